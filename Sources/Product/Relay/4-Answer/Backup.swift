import Bytes
import Domain
import Log
import World

extension Relay {
    /// A code that the user typed, of any kind that this challenge takes, whether or not its step has begun. Where the
    /// website answers for its users, their token names the challenge.
    public func backup(
        _ challenge: ChallengeID?, of token: UserToken?, code: String, by website: Website, as operation: Operation
    ) async throws(Refusal) -> ChallengeResult {
        guard challenge != nil || website.policy.answers == .website else { throw Self.challengeMissing }
        guard let found = try await self.row(challenge, of: token, website, for: operation) else { throw .notFound }
        var row = found
        // Of what is handed in at the same time one changes something, and the others are judged by what it left.
        for _ in 0..<3 {
            row = try await settled(row)
            if row.life.state.isEnd {
                let told = result(row)
                // The same request once more, after an answer that nobody saw.
                if row.operation == operation.id, let told { return told }
                throw .alreadyDecided(result: row.life.result.rawValue)
            }
            let isOver = try await judge(code, for: row, by: website, as: operation)
            let now = try await withStore("backup") { [row] () async throws(StoreFailure) in
                try await store.challenge(row.id, of: website.id)
            }
            guard let now else { throw .notFound }
            row = now
            if isOver, let told = result(row) { return told }
        }
        throw .unavailable
    }

    /// False where something has changed since it was read.
    private func judge(
        _ code: String, for row: ChallengeRow, by website: Website, as operation: Operation
    ) async throws(Refusal) -> Bool {
        let now = time.now()
        let recovery = RecoveryCode.digest(code, user: row.user)
        let open = try await withStore("backup") { () async throws(StoreFailure) in
            try await store.codes(for: row.id, of: row.user, recovery: recovery, at: now, as: operation.id)
        }
        if operation.mayHaveRun, open.isCounted { return true }
        // Right and wrong ones alike: what is refused tells nothing about the code.
        guard !open.lockout.isLocked else {
            recordCode(.locked, row, website, [])
            throw .codesLocked
        }
        let policy = try policy(of: row)
        let suspects = policy.factors.compactMap { kind in open.factors.first { $0.kind == kind } }
            .filter { $0.isSuspect(code, isRecovery: recovery != nil, open) }
        guard !suspects.isEmpty else {
            // None of the user's codes looks like it: that tells nobody what they look like.
            recordCode(.void, row, website, suspects)
            return true
        }
        if let wait = open.lockout.pause(at: now) {
            metrics.reached(.guess)
            recordCode(.early, row, website, suspects)
            throw .limited(retryAfter: wait)
        }
        var used: (factor: CodeFactor, kind: UsedCode.Kind)?
        // All of them, so that it takes as long whichever is right.
        for suspect in suspects {
            let kind = try match(code, recovery, suspect, open, row.user, website, at: now)
            if used == nil, let kind { used = (suspect, kind) }
        }
        guard let used else {
            let wrong = WrongCode(
                user: row.user, factors: suspects, challenge: row.id, before: open.lockout, guesses: policy.guesses,
                at: now)
            return try await refuse(wrong, row, website, as: operation)
        }
        guard let life = try? row.life.after(.answer(.approve, numberMatches: true), at: now) else { return false }
        let closing = ChallengeEnd(
            challenge: row.id, life: life, factor: used.factor.kind, proof: .code,
            code: UsedCode(
                user: row.user, factor: used.factor.id, failures: open.lockout.failures, kind: used.kind),
            event: "challenge.answered", at: now)
        guard try await end(closing, as: operation) else { return false }
        recordCode(.right, row, website, [used.factor])
        return true
    }

    /// What the code is of that factor; nil where it is none.
    private func match(
        _ code: String, _ recovery: [UInt8]?, _ factor: CodeFactor, _ open: OpenCodes, _ user: UserID,
        _ website: Website, at now: Timestamp
    ) throws(Refusal) -> UsedCode.Kind? {
        guard factor.kind != .recovery else {
            return recovery.flatMap { open.isRecoveryCode ? .recovery(digest: $0) : nil }
        }
        guard let secret = try secret(of: factor, user: user, website: website.id) else { return nil }
        func match(_ counters: [Int64]) -> Int64? {
            CodeWindow.match(
                code, in: counters, secret: secret, algorithm: factor.algorithm, digits: factor.digits)
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
        case .push, .pull, .recovery: return nil
        }
    }

    /// A wrong code counts against everything that it could have been. False where something has changed since.
    private func refuse(
        _ wrong: WrongCode, _ row: ChallengeRow, _ website: Website, as operation: Operation
    ) async throws(Refusal) -> Bool {
        guard try await count(wrong, by: website, as: operation) else { return false }
        recordCode(.wrong, row, website, wrong.factors)
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

extension CodeFactor {
    /// Whether that could be one of its codes.
    fileprivate func isSuspect(_ code: String, isRecovery: Bool, _ open: OpenCodes) -> Bool {
        guard kind != .recovery else { return isRecovery }
        guard OTP.isCode(code, digits: digits) else { return false }
        return !kind.isSent || open.sent[id]?.isEmpty == false
    }
}
