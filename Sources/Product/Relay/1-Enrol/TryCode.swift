import Bytes
import Domain
import Log
import World

extension Relay {
    /// How often factors are read again because something changed between the reading and the writing.
    static let mostReadings = 20

    /// A code for one factor outside a login: it confirms the factor, or finds its counter again. False for a wrong one,
    /// which counts as one at a login does.
    ///
    /// - Parameters:
    ///   - pick: the factor that it is for; where there is none the code is for nothing.
    ///   - check: the counter that the code is right for.
    ///   - write: gets the factor, the user's wrong codes as they were read, the counter, and the time.
    func trying(
        _ parameter: String, of known: UserRow, by website: Website, as operation: Operation,
        pick: ([CodeFactor], Timestamp) -> CodeFactor?,
        check: (CodeFactor, Secret, Timestamp) async throws(Refusal) -> Int64?,
        write: (CodeFactor, Int, Int64, Timestamp) async throws(StoreFailure) -> CodeUseOutcome
    ) async throws(Refusal) -> Bool {
        // Under an operation that may have run, what it did is done.
        if operation.mayHaveRun, let noted = try await noted(operation) { return noted != WrongCode.event }
        for _ in 0..<Self.mostReadings {
            let user = try await user(named: known.username, of: website)
            guard user.state == .active else { throw Self.barred(user.state) }
            guard !user.codes.isLocked else { throw .codesLocked }
            let factors = try await factors(of: user.id)
            let now = time.now()
            guard let factor = pick(factors, now),
                let secret = try secret(of: factor, user: user.id, website: website.id)
            else {
                throw .conflict([FieldFault(parameter, .state, "has nothing that this code could be for")])
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

    /// What the audit calls what this operation did; nil where it has done nothing.
    func noted(_ operation: Operation) async throws(Refusal) -> String? {
        try await withStore("noted") { () async throws(StoreFailure) in try await store.recordCodeUse(operation.id) }
    }
}
