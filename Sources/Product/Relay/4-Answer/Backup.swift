import Bytes
import Crypto
import Domain
import Log
import World

/// The check of a code that the website submits for its user.
///
/// All code factors of a user share one count of wrong codes and one delay (`Domain.CodeLockout`).
/// The relay reads the factors and this count, compares the code with every factor that it could
/// belong to, and writes the result under guards.
///
/// Invariants: a right code is accepted once, because its counter or digest is used up in the
/// script that ends the challenge. A wrong code counts once, however many factors it could belong
/// to. The refusal before the comparison is the same for right and wrong codes.
///
/// Failures: another code changes the count or the challenge between the read and the write. The
/// code is then judged again, at most three times.
///
/// Tests: `RelayTests/CodeTests.swift`, `CodeLockTests.swift`, `TOTPTests.swift` and
/// `HOTPTests.swift`.
extension Relay {
    /// Answers a challenge with a code that the user typed. The code may belong to any code factor
    /// that the challenge allows, even if its step has not begun. If the website answers for its
    /// users, the user's token can name the challenge.
    public func backup(
        _ challenge: ChallengeID?, of token: UserToken?, code: String, by website: Website, as operation: Operation
    ) async throws(Refusal) -> ChallengeResult {
        guard challenge != nil || website.policy.answers == .website else { throw Self.challengeMissing }
        guard let found = try await self.row(challenge, of: token, website, for: operation) else { throw .notFound }
        var row = found
        // If several codes arrive at the same time, one of them changes the store. The others are
        // judged again by the new state.
        for _ in 0..<3 {
            row = try await settled(row)
            if row.life.state.isEnd {
                let reported = result(row)
                // The same request came again because its first answer was lost.
                if row.operation == operation.id || row.operation == WrongCode.ending(operation).id, let reported {
                    return reported
                }
                throw .alreadyDecided(result: row.life.result.rawValue)
            }
            let isOver = try await judge(code, for: row, by: website, as: operation)
            let now = try await withStore("backup") { [row] () async throws(StoreFailure) in
                try await store.challenge(row.id, of: website.id)
            }
            guard let now else { throw .notFound }
            row = now
            if isOver, let reported = result(row) { return reported }
        }
        throw .unavailable
    }

    /// Judges a code; returns false if something has changed since the read.
    private func judge(
        _ code: String, for row: ChallengeRow, by website: Website, as operation: Operation
    ) async throws(Refusal) -> Bool {
        let now = time.now()
        let typed = TypedCode(code, of: row.user, sealer)
        let open = try await withStore("backup") { () async throws(StoreFailure) in
            try await store.codes(
                for: row.id, of: row.user, recovery: typed.recovery, isTemporary: !typed.temporary.isEmpty, at: now,
                as: operation.id)
        }
        let policy = try policy(of: row)
        if try await wasWrong(row, policy, open, as: operation) { return true }
        guard !open.hasUserExpired else { throw .userExpired }
        // The refusal is the same for right and wrong codes, so it reveals nothing about the code.
        guard !open.lockout.isLocked else {
            recordCode(.locked, row, website, [])
            throw .codesLocked
        }
        let suspects = policy.factors.compactMap { kind in open.factors.first { $0.kind == kind } }
            .filter { $0.isSuspect(typed, open) }
        if let wait = open.lockout.pause(at: now) {
            metrics.reached(.guess)
            recordCode(.early, row, website, suspects)
            throw .limited(retryAfter: wait)
        }
        guard !suspects.isEmpty else {
            // The code has the form of none of the user's codes. It fails like a wrong code, so the
            // answer does not reveal their form, but it does not count.
            guard try await failed(row, policy, open, at: now, as: operation) else { return false }
            recordCode(.void, row, website, suspects)
            return true
        }
        var used: (factor: CodeFactor, kind: UsedCode.Kind)?
        // Every factor is compared, so the time does not depend on which one matches.
        for suspect in suspects {
            let kind = try match(typed, suspect, open, row.user, website, at: now)
            if used == nil, let kind { used = (suspect, kind) }
        }
        guard let used else {
            let retry = try await retry(after: row, policy, open, at: now)
            let wrong = WrongCode(
                user: row.user, factors: suspects, challenge: row.id, before: open.lockout, guesses: policy.guesses,
                end: retry == .end ? wrongCodeEnd(row.life, of: row.id, at: now) : nil, at: now)
            return try await refuse(wrong, retry, row, website, as: operation)
        }
        if case .temporary(let temporary, let enrolling) = used.kind {
            guard temporary.mayAnswer(row.approves, enrolling: enrolling) else {
                recordCode(.void, row, website, [used.factor])
                throw Self.bindsNothing
            }
        }
        guard let life = try? row.life.after(.answer(.approve, numberMatches: true), at: now) else { return false }
        var closing = ChallengeEnd(
            challenge: row.id, life: life, factor: used.factor.kind, proof: .code,
            code: UsedCode(
                user: row.user, factor: used.factor.id, failures: open.lockout.failures, kind: used.kind),
            event: "challenge.answered", at: now)
        closing.askedAt = row.askedAt
        guard try await end(closing, as: operation) else { return false }
        recordCode(.right, row, website, [used.factor])
        return true
    }

    /// The use of the code if it is right for this factor; nil if it is not.
    private func match(
        _ typed: TypedCode, _ factor: CodeFactor, _ open: OpenCodes, _ user: UserID, _ website: Website,
        at now: Timestamp
    ) throws(Refusal) -> UsedCode.Kind? {
        guard factor.kind != .recovery else {
            return typed.recovery.flatMap { open.isRecoveryCode ? .recovery(digest: $0) : nil }
        }
        guard factor.kind != .operator else {
            guard let temporary = open.temporary, temporary.matches(typed.temporary) else { return nil }
            return .temporary(temporary, enrolling: Approvable.activation(of: user).digest)
        }
        guard let secret = try secret(of: factor, user: user, website: website.id) else { return nil }
        func match(_ counters: [Int64]) -> Int64? {
            CodeWindow.match(
                typed.text, in: counters, secret: secret, algorithm: factor.algorithm, digits: factor.digits)
        }
        switch factor.kind {
        case .totp:
            let steps = CodeWindow.steps(after: factor.counter, period: factor.period ?? 30, at: now)
            return match(steps).map { .own(counter: factor.counter, becomes: $0) }
        case .hotp:
            return match(CodeWindow.counters(from: factor.counter)).map {
                .own(counter: factor.counter, becomes: $0 + 1)
            }
        case .sms, .mail: return match(open.sent[factor.id] ?? []).map { .sent(counter: $0) }
        case .push, .pull, .recovery, .operator: return nil
        }
    }

    /// Counts a wrong code against every factor that it could belong to. Returns false if something
    /// has changed since the read.
    private func refuse(
        _ wrong: WrongCode, _ retry: CodeRetry, _ row: ChallengeRow, _ website: Website, as operation: Operation
    ) async throws(Refusal) -> Bool {
        guard try await count(wrong, by: website, as: operation) else { return false }
        recordCode(.wrong, row, website, wrong.factors)
        if retry == .resend, !wrong.after.isLocked { try await resend(row.id, as: operation) }
        return true
    }

    private func recordCode(
        _ outcome: CodeOutcome, _ row: ChallengeRow, _ website: Website, _ suspects: [CodeFactor]
    ) {
        metrics.handedIn(outcome)
        log.info(
            "code.handed_in",
            [
                .website: website.name, .user: row.user.text, .challenge: row.id.text, .outcome: outcome.rawValue,
                .factor: suspects.map(\.kind.rawValue).joined(separator: ","),
            ])
    }
}

/// A code as the user typed it, with the digests of the forms that it can have.
private struct TypedCode {
    let text: String
    let recovery: [UInt8]?
    /// The digests under all keys; empty if the text cannot be a temporary code.
    let temporary: [[UInt8]]

    init(_ text: String, of user: UserID, _ sealer: Sealer) {
        self.text = text
        recovery = RecoveryCode.digest(text, user: user)
        temporary = TemporaryCode.digests(text, user: user, sealer)
    }
}

extension CodeFactor {
    /// Whether the code has the form of this factor's codes.
    fileprivate func isSuspect(_ typed: TypedCode, _ open: OpenCodes) -> Bool {
        guard kind != .recovery else { return typed.recovery != nil }
        guard kind != .operator else { return !typed.temporary.isEmpty }
        guard OTP.isCode(typed.text, digits: digits) else { return false }
        return !kind.isSent || open.sent[id]?.isEmpty == false
    }
}
