/// The replacement of a factor that somebody says the user has lost. A person who has lost nothing
/// stops it.
public struct Recovery: Sendable, Equatable {
    public enum State: String, Sendable {
        case sent, opened, waiting, ready
    }

    public let id: String
    /// The factor: `totp`, `hotp`, or `push` for all phones.
    public let factor: String
    public let state: State
    public let createdAt: Timestamp
    /// The time from which the change is possible; nil before the second proof.
    public let readyAt: Timestamp?
}

extension Phone {
    /// Returns the open recoveries. Show them whenever the app is opened.
    public func recoveries() async throws(PhoneError) -> [Recovery] {
        let answer = try await send(RelayRequest("GET", "/recovery"))
        guard let entries = try answer.accepted()["recoveries"]?.array else { throw .odd("recoveries is missing") }
        // States that the app does not know are ignored.
        return entries.compactMap { entry in
            guard let object = entry.object, let id = object["recovery"]?.string, RelayAnswer.isID(id),
                let factor = object["factor"]?.string,
                let state = object["state"]?.string.flatMap({ Recovery.State(rawValue: $0) }),
                let createdAt = object["created_at"]?.string.flatMap({ Timestamp(rfc3339: $0) })
            else { return nil }
            return Recovery(
                id: id, factor: ScreenText.visible(factor, limit: 32), state: state, createdAt: createdAt,
                readyAt: object["ready_at"]?.string.flatMap { Timestamp(rfc3339: $0) })
        }
    }

    /// Stops a recovery. It is no error if the recovery has ended.
    public func stopRecovery(_ id: String) async throws(PhoneError) {
        guard RelayAnswer.isID(id) else { throw .unable("this is no id of a recovery") }
        try await send(RelayRequest("DELETE", "/recovery/\(id)")).accepted()
    }
}
