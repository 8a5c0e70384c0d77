import Domain
import World

/// The consequences of a wrong code for its challenge, by the policy `code-retries`.
///
/// The original protocol permits one code: a wrong code of a mail or text message cancels the login,
/// and a wrong code of an app cancels it or sends another one. By default the user may try again.
///
/// Invariant: the end of a challenge by a wrong code is written with the count of that code. The
/// next code is sent after it. If the relay dies in between, the challenge stays open with one wrong
/// code more, and the website's repetition of the request sends the code.
///
/// Tests: `RelayTests/CodeRetryTests.swift`.
enum CodeRetry: Equatable {
    /// The challenge stays as it is.
    case keep
    case end
    /// The relay sends a code.
    case resend
}

extension Relay {
    /// Decides what follows a wrong code.
    func retry(
        after row: ChallengeRow, _ policy: Policy, _ open: OpenCodes, at now: Timestamp
    ) async throws(Refusal) -> CodeRetry {
        switch policy.codeRetries {
        case .keep: return .keep
        case .cancel: return .end
        case .resend:
            // A code was sent before, so the wrong one may have been typed for it.
            guard open.sent.isEmpty, let cascade = try await cascade(row.id) else { return .end }
            return codeToResend(cascade, policy, at: now) == nil ? .end : .resend
        }
    }

    /// Does what follows a code that cannot be any of the user's, and therefore does not count.
    /// Returns false if the challenge has changed since it was read.
    func failed(
        _ row: ChallengeRow, _ policy: Policy, _ open: OpenCodes, at now: Timestamp, as operation: Operation
    ) async throws(Refusal) -> Bool {
        switch try await retry(after: row, policy, open, at: now) {
        case .keep: return true
        case .end:
            guard let end = end(row.life, of: row.id, at: now) else { return false }
            return try await self.end(end, as: operation)
        case .resend:
            try await resend(row.id, as: operation)
            return true
        }
    }

    /// Returns the end of a challenge after a wrong code; nil if it has ended already.
    func end(_ life: ChallengeLife, of challenge: ChallengeID, at now: Timestamp) -> ChallengeEnd? {
        (try? life.after(.giveUp(.wrongCode), at: now)).map { life in
            ChallengeEnd(challenge: challenge, life: life, event: "challenge.ended", at: now)
        }
    }

    /// Sends a code by the first factor that can send one. If each of them is refused, such as a
    /// text message beyond its limit, the challenge ends.
    func resend(_ challenge: ChallengeID, as operation: Operation) async throws(Refusal) {
        for round in Factor.choices.indices {
            guard let row = try await cascade(challenge) else { return }
            let policy = try policy(row.policy, of: challenge)
            let now = time.now()
            guard let factor = codeToResend(row, policy, at: now) else {
                if let end = end(ChallengeLife(expiresAt: row.expiresAt), of: challenge, at: now) {
                    _ = try await self.end(end, as: WrongCode.ending(operation))
                }
                return
            }
            let begun = try await begin(
                factor, row, policy, means(of: row), because: .wrongCode, as: operation.part("resend \(round)"))
            // If the step did not begin, another one has begun at the same time.
            guard begun?.state == .refused else { return }
        }
    }

    /// Returns the factor whose code the relay can send now; nil if there is none.
    private func codeToResend(_ row: CascadeRow, _ policy: Policy, at now: Timestamp) -> Factor? {
        Cascade(factors: policy.factors).resend(after: row.tried, means(of: row), at: now)
    }
}
