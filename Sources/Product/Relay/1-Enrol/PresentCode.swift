import Domain
import Log
import World

/// The proof that somebody who replaces an authenticator app still has the present one.
extension Relay {
    /// Returns the approval of a new app; nil if nobody need approve it.
    ///
    /// An active app is replaced only by somebody who has it, or with a phone. A recovery code is
    /// not enough, and the website's word is not either: a lost app has its own way back
    /// (`Recovery.swift`).
    ///
    /// - Parameter code: a code of the present app.
    func word(
        toReplaceTOTPWith code: String?, _ approval: ChallengeID?, _ user: UserRow, _ website: Website,
        _ operation: Operation
    ) async throws(Refusal) -> Approved? {
        guard try await factors(of: user.id).contains(where: { $0.kind == .totp && $0.state == .active }) else {
            return try await word(for: .totp, approval: approval, user, website, operation)
        }
        try requireIdentity(of: user, website)
        if let code, approval == nil, website.policy.activationApproval != nil {
            guard try await usePresent(code, of: user, website, operation) else {
                throw .invalid([
                    FieldFault(
                        "otp", .mismatch,
                        LocalizedText(
                            "is not the present code of the app, and counts as a wrong one",
                            de: "ist nicht der aktuelle Code der App und zählt als falscher"))
                ])
            }
            return nil
        }
        var approvable = Approvable.code(.totp, of: user.id, address: nil, sealer)
        let approvers = website.policy.answers == .website ? [Factor.totp] : [.push, .totp]
        approvable.factors = approvers.filter(website.policy.factors.contains)
        guard approvable.factors?.isEmpty == false else {
            throw .forbidden(
                LocalizedText(
                    "The user has an app already: send its present code as otp",
                    de: "Der Benutzer hat schon eine App: Senden Sie deren aktuellen Code als otp"))
        }
        return try await approved(approvable, by: approval, user, website, operation)
    }

    private func usePresent(
        _ code: String, of user: UserRow, _ website: Website, _ operation: Operation
    ) async throws(Refusal) -> Bool {
        // The use of the code is a change of its own, with its own row in the audit.
        let using = operation.part("present code")
        return try await trying("otp", of: user, by: website, as: using) { factors, _ in
            factors.first { $0.kind == .totp && $0.state == .active }
        } check: { app, secret, now in
            guard OTP.isCode(code, digits: app.digits) else { return nil }
            let step = OTP.step(at: now, period: app.period ?? CodeShape().period)
            return (step - 1...step + 1).first {
                $0 > app.counter && app.accepts(code, secret: secret, counter: $0)
            }
        } write: { (app, failures, step, now) async throws(StoreFailure) in
            try await self.store.use(app, of: user.id, failures: failures, step: step, at: now, as: using)
        }
    }
}
