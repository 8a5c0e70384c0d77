/// The challenges that wait for the person.
public struct Pending: Sendable, Equatable {
    public var challenges: [Challenge] = []
    /// The challenges that this phone must not answer. Show the reason, and nothing to approve.
    public var refused: [Challenge.Refused] = []

    public var isEmpty: Bool { challenges.isEmpty && refused.isEmpty }
    public var ids: [String] { challenges.map(\.id) + refused.compactMap(\.id) }
}

extension Phone {
    /// The most challenges that the relay accepts in `known`.
    private static let mostKnown = 16

    /// Asks for the pending challenges. Call it whenever the app comes to the foreground, and when
    /// the person opens a notification.
    ///
    /// - Parameters:
    ///   - known: the challenges on the screen.
    ///   - seconds: how long the relay holds the request while the pending challenges are exactly
    ///     those; 60 at most.
    public func pending(knowing known: [String] = [], waiting seconds: Int = 0) async throws(PhoneError) -> Pending {
        var body: JSONObject = [:]
        if !known.isEmpty { body["known"] = .array(known.prefix(Self.mostKnown).map { .string($0) }) }
        body["pins"] = .array(enrolment.pins.map { .string(Base64URL.encode($0)) })
        body["pins_seq"] = .integer(enrolment.pinSequence)
        var request = RelayRequest("POST", "/pending", body)
        if seconds > 0 {
            request.fields["prefer"] = "wait=\(min(seconds, 60))"
            request.timeout += min(seconds, 60)
        }
        let answer = try await send(request)
        guard let entries = try answer.accepted()["pending"]?.array,
            let time = Timestamp(rfc3339: try answer.text("time"))
        else { throw .odd("pending or time is missing") }
        if let statement = try answer.accepted()["pins"]?.string { try adoptPins(statement) }
        var pending = Pending()
        for entry in entries {
            do throws(Challenge.Refused) {
                pending.challenges.append(try Challenge(entry, website: enrolment.website, now: time))
            } catch {
                pending.refused.append(error)
            }
        }
        return pending
    }

    /// Takes the pins that the relay's authority states. A statement that breaks a rule is ignored.
    private func adoptPins(_ statement: String) throws(PhoneError) {
        guard let statement = PinStatement(statement, for: enrolment, at: now, cryptography) else { return }
        try change {
            $0.pins = statement.pins
            $0.pinSequence = statement.sequence
        }
    }

    /// Polls in the foreground, until `show` returns false or the phone was suspended or unbound.
    ///
    /// - Parameter show: called with each list that differs from the one before. Remove challenges
    ///   that are no longer in it from the screen.
    public func watch(_ show: @Sendable (Pending) async -> Bool) async throws(PhoneError) {
        var (known, failures): ([String], Int64) = ([], 0)
        while !Task.isCancelled {
            let start = parts.clock.monotonic()
            do throws(PhoneError) {
                let pending = try await pending(knowing: known, waiting: 60)
                failures = 0
                let isNew = Set(pending.ids) != Set(known)
                known = pending.ids
                if isNew {
                    guard await show(pending) else { return }
                } else if parts.clock.monotonic() - start < 2000 {
                    // Another program may poll for the same phone.
                    await parts.clock.sleep(milliseconds: 2000)
                }
            } catch {
                guard error.mayPass else { throw error }
                failures = min(failures + 1, 5)
                var pause = min(Int64(1000) << failures, 30_000)
                if case .refused(let refusal) = error, let after = refusal.retryAfter {
                    pause = max(pause, after * 1000)
                }
                await parts.clock.sleep(milliseconds: pause)
            }
        }
    }
}
