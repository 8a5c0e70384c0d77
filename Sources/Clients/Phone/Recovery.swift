import JSON
import World

/// The replacement of a factor that the user may have lost. A person who has lost nothing cancels
/// it.
public struct OpenRecovery: Sendable, Equatable {
    public let id: String
    /// The factor to be replaced: `totp`, `hotp`, or `push` for all phones.
    public let factor: String
    /// `sent`, `opened`, `waiting` or `ready`.
    public let state: String
    public let createdAt: Timestamp
    /// The time from which the change is possible; nil before the second proof.
    public let readyAt: Timestamp?

    init(_ value: JSONValue, of answer: RelayAnswer) throws(CallFailure) {
        guard let object = value.object, let id = object["recovery"]?.string, RelayAnswer.isID(id),
            let factor = object["factor"]?.string, let state = object["state"]?.string,
            let createdAt = object["created_at"]?.string.flatMap({ Timestamp(rfc3339: $0) })
        else { throw answer.odd("with an invalid recovery") }
        self.id = id
        self.factor = factor
        self.state = state
        self.createdAt = createdAt
        readyAt = object["ready_at"]?.string.flatMap { Timestamp(rfc3339: $0) }
    }
}

extension Responder {
    /// Returns the open recoveries of the user, the newest first.
    public func recoveries() async throws(CallFailure) -> [OpenRecovery] {
        let answer = try await send(.init("/recovery", method: "GET"))
        guard let entries = try answer.accepted()["recoveries"]?.array else { throw answer.odd("without recoveries") }
        var recoveries: [OpenRecovery] = []
        for entry in entries { recoveries.append(try OpenRecovery(entry, of: answer)) }
        return recoveries
    }

    /// Cancels a recovery. It is no error if it has ended.
    public func cancelRecovery(_ id: String) async throws(CallFailure) {
        guard RelayAnswer.isID(id) else { throw .unable("\(ScreenText.visible(id)) is not the id of a recovery") }
        try await send(.init("/recovery/\(id)", method: "DELETE")).accepted()
    }
}
