import Bytes
import Domain
import Log
import World

extension Relay {
    /// The most times that factors are read again because something changed between read and write.
    static let mostReadings = 20

    /// Checks a code for one factor outside a login, to confirm the factor or to resynchronise its
    /// counter. Returns false if the code is wrong; a wrong code counts as one at a login does.
    ///
    /// - Parameters:
    ///   - pick: selects the factor; if it returns nil, the request is refused.
    ///   - check: returns the counter for which the code is right; nil if it is wrong.
    ///   - write: stores the result. It gets the factor, the user's wrong codes as they were read,
    ///     the counter, and the time.
    func trying(
        _ parameter: String, of known: UserRow, by website: Website, as operation: Operation,
        pick: ([CodeFactor], Timestamp) -> CodeFactor?,
        check: (CodeFactor, Secret, Timestamp) async throws(Refusal) -> Int64?,
        write: (CodeFactor, Int, Int64, Timestamp) async throws(StoreFailure) -> CodeUseOutcome
    ) async throws(Refusal) -> Bool {
        // If the operation may have run before, its recorded result counts.
        if operation.mayHaveRun, let recordedEvent = try await recordedEvent(operation) {
            return recordedEvent != WrongCode.event
        }
        for _ in 0..<Self.mostReadings {
            let user = try await user(named: known.username, of: website)
            guard user.state == .active else { throw Self.barred(user.state) }
            guard !user.codes.isLocked else { throw .codesLocked }
            let factors = try await factors(of: user.id)
            let now = time.now()
            // Recovery codes have digests in place of a secret.
            guard let factor = pick(factors, now),
                let secret = factor.kind == .recovery
                    ? Secret([]) : try secret(of: factor, user: user.id, website: website.id)
            else {
                throw .conflict([
                    FieldFault(
                        parameter, .state,
                        LocalizedText(
                            "has no factor that awaits or accepts this code",
                            de: "hat keinen Faktor, der auf diesen Code wartet oder ihn annimmt"))
                ])
            }
            try requireWord(for: factor, parameter, user, website)
            if let pause = user.codes.pause(at: now) {
                metrics.reached(.guess)
                throw .limited(retryAfter: pause)
            }
            if let counter = try await check(factor, secret, now) {
                let written = try await withStore("code") { () async throws(StoreFailure) in
                    try await write(factor, user.codes.failures, counter, now)
                }
                switch written {
                case .changed: continue
                case .taken: throw .conflict([Self.takenFault(factor.kind)])
                case .done:
                    log.info(
                        "factor.proved", [.website: website.name, .user: user.id.text, .factor: factor.kind.rawValue])
                    return true
                }
            }
            let wrong = WrongCode(
                user: user.id, factors: [factor], challenge: nil, before: user.codes,
                guesses: website.policy.guesses, at: now)
            if try await count(wrong, by: website, as: operation) { return false }
        }
        throw .unavailable
    }

    /// Returns the audit event of this operation; nil if it has changed nothing.
    func recordedEvent(_ operation: Operation) async throws(Refusal) -> String? {
        try await withStore("code") { () async throws(StoreFailure) in try await store.recordCodeUse(operation.id) }
    }
}
