import Domain
import World

/// The consequences of a wrong code for its challenge, by the policy `code-retries`.
///
/// The original protocol permits one code: a wrong code of a mail or text message cancels the
/// login, and a wrong code of an app cancels it or sends another one. By default the user may try
/// again.
///
/// Invariant: a code that counts ends its challenge in the script that counts it. The next code is
/// sent after that. If the relay dies in between, the code is counted and the challenge stays open,
/// and the website's repetition of the request sends the next code. A code that does not count, and
/// a next code that cannot be sent, end the challenge by a script of their own.
///
/// Locked codes end no challenge, because a phone may still answer.
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
            // The codes were locked after they were read; the caller will find that out.
            guard !cascade.areCodesLocked else { return .keep }
            return codeToResend(cascade, policy, at: now) == nil ? .end : .resend
        }
    }

    /// Does what follows a code that cannot be any of the user's, and therefore does not count.
    /// Returns false if the challenge has changed since it was read.
    func failed(
        _ row: ChallengeRow, _ policy: Policy, _ open: OpenCodes, at now: Timestamp, as operation: Operation
    ) async throws(Refusal) -> Bool {
        // The form of the code is not that of the sent one, so nobody typed it for that. It may be
        // the same submission a second time.
        if policy.codeRetries == .resend, !open.sent.isEmpty { return true }
        switch try await retry(after: row, policy, open, at: now) {
        case .keep: return true
        case .end:
            guard let closing = wrongCodeEnd(row.life, of: row.id, at: now) else { return false }
            return try await end(closing, as: operation)
        case .resend:
            try await resend(row.id, as: operation)
            return true
        }
    }

    /// Whether an earlier run of the same request found its code wrong. The relay may have died
    /// before it sent the next code, so that is done now.
    func wasWrong(
        _ row: ChallengeRow, _ policy: Policy, _ open: OpenCodes, as operation: Operation
    ) async throws(Refusal) -> Bool {
        guard operation.mayHaveRun else { return false }
        guard policy.codeRetries == .resend else { return open.isCounted }
        // A code that does not count leaves no trace but the factor that began after it.
        let hasResent = try await hasResent(as: operation)
        guard open.isCounted || hasResent else { return false }
        if open.sent.isEmpty { try await resend(row.id, as: operation) }
        return true
    }

    /// Returns the end of a challenge after a wrong code; nil if it has ended already.
    func wrongCodeEnd(_ life: ChallengeLife, of challenge: ChallengeID, at now: Timestamp) -> ChallengeEnd? {
        (try? life.after(.giveUp(.wrongCode), at: now)).map { life in
            ChallengeEnd(challenge: challenge, life: life, event: "challenge.ended", at: now)
        }
    }

    /// Sends a code by the first factor that can send one. If each of them is refused, such as a
    /// text message beyond its limit, the challenge ends.
    func resend(_ challenge: ChallengeID, as operation: Operation) async throws(Refusal) {
        for round in Factor.choices.indices {
            guard let row = try await cascade(challenge), !row.areCodesLocked else { return }
            // The cascade itself has begun such a factor at the same time.
            guard !row.steps.contains(where: { $0.factor.isSent && $0.state.isUnderWay }) else { return }
            let policy = try policy(row.policy, of: challenge)
            let now = time.now()
            guard let factor = codeToResend(row, policy, at: now) else {
                if let closing = wrongCodeEnd(ChallengeLife(expiresAt: row.expiresAt), of: challenge, at: now) {
                    _ = try await end(closing, as: WrongCode.ending(operation))
                }
                return
            }
            let begun = try await begin(
                factor, row, policy, means(of: row), because: .wrongCode, as: Self.resending(operation, round))
            // If the step did not begin, another one has begun at the same time.
            guard begun?.state == .refused else { return }
        }
    }

    /// Whether an earlier run of a repeated request has begun a factor after its wrong code.
    func hasResent(as operation: Operation) async throws(Refusal) -> Bool {
        try await withStore("backup") { () async throws(StoreFailure) in
            try await store.begun(by: Self.resending(operation, 0).id) != nil
        }
    }

    private static func resending(_ operation: Operation, _ round: Int) -> Operation {
        operation.part("resend \(round)")
    }

    /// Returns the factor whose code the relay can send now; nil if there is none.
    private func codeToResend(_ row: CascadeRow, _ policy: Policy, at now: Timestamp) -> Factor? {
        Cascade(factors: policy.factors).resend(after: row.tried, means(of: row), at: now)
    }
}
