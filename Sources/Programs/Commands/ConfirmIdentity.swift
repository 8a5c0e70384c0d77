import Crypto
import Daemon
import Domain
import JSON
import Relay
import Storage
import World

extension Tool {
    static let confirmIdentity = Subcommand(
        command: Command(
            "user confirm-identity", "Records that a person's identity was checked, and has the activation mailed.",
            operands: [.init("USER", "The user name, as given to /register.")],
            options: [
                OperatorStore.usersWebsite,
                .init("by", .one("NAME"), "The person who checked the identity (required)."),
                .init("document", .one("TEXT"), "The document that was checked, such as 'passport' (required)."),
            ],
            notes: """
                Under the policy enrolment: confirmed, a user gets no activation code before this. The relay then mails the
                code to the user's address; it expires after ten minutes, and the website can have another one mailed. Nothing
                is mailed if the user has a phone already, or is locked or frozen. The audit keeps both texts until the user
                is deleted: do not write the number of a document.
                """)
    ) { invocation throws(Failure) in
        let (by, document) = (
            try invocation.line("by", limit: Identities.byLimit),
            try invocation.line("document", limit: Identities.documentLimit)
        )
        let settings = try Settings.load(invocation)
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let user = try store.user(invocation)
        try user.requireEnabled()
        let website = try store.website(named: user.website)
        let policy = try WebsitePolicy(website.traits, settings: settings).policy
        let operation = try store.newOperation()
        let activation = try user.activation(of: website.id, policy, store, as: operation)
        let check = Identities.Check(user: user.id, by: by, document: document, at: store.now)
        guard try store.read(Identities.confirm(check, activation: activation, as: operation)) else {
            throw Failure(
                .conflict, "\(try store.user(invocation).fullName) was locked, frozen or disabled in the meantime",
                next: "Nothing was recorded. 'twoefay user show' shows the state. If it was a mistake, undo it, and "
                    + "run the command again.")
        }
        return Report(
            "The identity of \(user.fullName) is confirmed. \(user.consequence(activation, policy))",
            json: .object([
                "user": .string(user.username), "website": .string(user.website),
                "confirmed_at": .string(store.now.rfc3339), "by": .string(by), "document": .string(document),
                "sent_to": activation == nil ? .null : .text(user.email),
                "expires_at": .text(activation?.expiresAt.rfc3339),
            ]))
    }
}

extension Accounts.User {
    private var hasPhone: Bool { devices.contains { $0.view.state == .active } }

    /// Returns the activation that is mailed now; nil if the user needs none, or could not use it.
    fileprivate func activation(
        of website: WebsiteID, _ policy: Policy, _ store: OperatorStore, as operation: Operation
    ) throws(Failure) -> NewActivation? {
        guard policy.enrolment == .confirmed, !hasPhone, state == .active else { return nil }
        guard email != nil else {
            throw Failure(
                .conflict, "\(fullName) has no mail address, to which the activation could be sent",
                next: "Nothing was recorded. The website can set the address with PATCH /user/….")
        }
        guard store.settings.mail.url != nil else {
            throw Failure(
                .conflict, "no mail server is set, so the activation cannot be sent",
                next: "Nothing was recorded. Set mail.url and mail.from in the settings; see docs/operators/mail.md.")
        }
        let drawn = OperationSecret(drawnFrom: SystemRandomness())
        var activation = NewActivation(
            ActivationCode(drawn), for: id, approval: policy.activationApproval, at: store.now)
        let sealer = try store.usableSealer()
        do throws(CryptoFailure) {
            activation.mail = try ActivationMail(
                drawn, for: id, of: website, language: nil, sender: nil, at: store.now, as: operation, by: sealer,
                SystemRandomness())
        } catch {
            throw Failure(.failed, "\(error)", next: "Nothing was recorded. " + Failure.cryptoRemedy)
        }
        return activation
    }

    fileprivate func consequence(_ activation: NewActivation?, _ policy: Policy) -> String {
        if let activation {
            return "The relay mails an activation code to \(email ?? ""), valid until \(activation.expiresAt.rfc3339)."
        }
        if hasPhone { return "Nothing was mailed, because the user has a phone." }
        guard policy.enrolment == .confirmed else {
            return "Nothing was mailed: the website's policy is enrolment: \(policy.enrolment.rawValue)."
        }
        return "Nothing was mailed, because the user is \(state.rawValue). "
            + "After 'twoefay user unlock' the website can have an activation mailed."
    }
}

extension Invocation {
    /// Returns the text of a required option, which must be one line.
    fileprivate func line(_ name: String, limit: Int) throws(Failure) -> String {
        let next = "Run 'twoefay user confirm-identity --help' for usage."
        guard let text = value(name) else { throw Failure(.usage, "--\(name) is missing", next: next) }
        if let complaint = FieldRule.line(text, limit: limit) {
            throw Failure(.usage, "--\(name) \(complaint)", next: next)
        }
        return text
    }
}
