import Domain
import Log
import World

/// New recovery codes, which are shown once.
public struct NewRecoveryCodes: Sendable, Equatable {
    public let codes: [String]
    /// The position, from 1, of the code that the user must type back before the codes count; nil
    /// if they count at once.
    public let position: Int?
}

extension Relay {
    /// Creates ten recovery codes, which replace all earlier ones. They are shown once, and each
    /// works once. Under the policy `recovery-check` they count, and replace the earlier ones, only
    /// when one of them was typed back.
    public func addRecoveryCodes(
        username: String, approval: ChallengeID?, by website: Website, as operation: Operation
    ) async throws(Refusal) -> NewRecoveryCodes {
        let user = try await user(named: username, of: website)
        let approved = try await word(for: .recovery, approval: approval, user, website, operation)
        let (drawn, now) = (drawSecret(), operation.begunAt ?? time.now())
        let use = OperationSecret.Use(.recovery, user: user.id, website: website.id)
        let isChecked = website.policy.recoveryCheck == .on
        let factor = NewFactor(
            id: operation.identifier("recovery"), user: user.id, kind: .recovery, state: isChecked ? .waiting : .active,
            sealed: nil, algorithm: .sha256, digits: RecoveryCode.letters,
            counter: isChecked ? Int64(RecoveryCode.checkedPosition(drawn)) : 0, approvedBy: approved, at: now)
        let found = try await enrol(
            FactorEnrolment(
                factor, mayReplace: true, isVouchedFor: isVouchedFor(approved, website),
                codes: RecoveryCode.codes(drawn).compactMap { RecoveryCode.digest($0, user: user.id) },
                secret: try stored(drawn, for: use, of: operation, at: now)),
            for: user, by: website, as: operation)
        let settled = try settled(drawn, for: use, of: operation, found: found)
        return NewRecoveryCodes(
            codes: RecoveryCode.codes(settled),
            position: isChecked ? RecoveryCode.checkedPosition(settled) : nil)
    }

    /// Confirms that the user has written the new recovery codes down: the code at the asked
    /// position was typed back, which does not use it up. Returns false if the code is wrong; a
    /// wrong code counts.
    public func confirmRecoveryCodes(
        username: String, code: String, by website: Website, as operation: Operation
    ) async throws(Refusal) -> Bool {
        let user = try await user(named: username, of: website)
        let digest = RecoveryCode.digest(code, user: user.id)
        return try await trying("otp", of: user, by: website, as: operation) { factors, _ in
            factors.first { $0.kind == .recovery && $0.state == .waiting }
        } check: { (waiting, _, _) async throws(Refusal) in
            guard let digest else { return nil }
            let position = try await withStore("recovery") { () async throws(StoreFailure) in
                try await store.position(ofRecovery: digest, in: waiting.id, of: user.id)
            }
            return position == waiting.counter ? position : nil
        } write: { (waiting, failures, _, now) async throws(StoreFailure) in
            try await store.confirm(
                recovery: waiting, of: user.id, digest: digest ?? [], failures: failures,
                isVouchedFor: isVouchedFor(nil, website), at: now, as: operation)
        }
    }

    /// Lifts a lock or a freeze with a recovery code, unless an operator set it. Returns false if
    /// the code is wrong; a wrong code counts. A code lock cannot be lifted this way, because a
    /// recovery code is itself a code.
    public func unlock(
        username: String, code: String, by website: Website, as operation: Operation
    ) async throws(Refusal) -> Bool {
        if operation.mayHaveRun, let recordedEvent = try await recordedEvent(operation) {
            return recordedEvent != WrongCode.event
        }
        for _ in 0..<Self.mostReadings {
            let user = try await user(named: username, of: website)
            guard user.state != .disabled else { throw .disabled }
            guard user.state != .expired else { throw .userExpired }
            guard user.state == .active || user.stoppedBy != .operator else { throw .stopped("user unlock") }
            guard !user.codes.isLocked else { throw .codesLocked }
            guard user.state != .active else { return true }
            let now = time.now()
            guard
                let factor = try await factors(of: user.id).first(where: { $0.kind == .recovery && $0.state == .active }
                )
            else {
                throw .conflict([
                    FieldFault(
                        "otp", .state,
                        LocalizedText(
                            "must be a recovery code, and the user has none",
                            de: "muss ein Notfallcode sein, und der Benutzer hat keine"))
                ])
            }
            if let pause = user.codes.pause(at: now) {
                metrics.reached(.guess)
                throw .limited(retryAfter: pause)
            }
            if let digest = RecoveryCode.digest(code, user: user.id) {
                let unlocked = try await withStore("unlock") { () async throws(StoreFailure) in
                    try await store.unlock(
                        user.id, recovery: digest, of: factor.id, failures: user.codes.failures,
                        lifting: ChangedValues(unlocking: user.state), at: now, as: operation)
                }
                if unlocked {
                    log.notice(
                        "user.unlocked",
                        [.website: website.name, .user: user.id.text, .factor: Factor.recovery.rawValue])
                    return true
                }
            }
            let wrong = WrongCode(
                user: user.id, factors: [factor], challenge: nil, state: user.state,
                before: user.codes, guesses: website.policy.guesses, at: now)
            if try await count(wrong, by: website, as: operation) { return false }
        }
        throw .unavailable
    }
}
