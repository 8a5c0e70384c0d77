import Crypto
import Daemon
import Domain
import JSON
import Relay
import Storage
import World

/// The commands for recoveries: the help desk may start one, vouch for the person, and cancel it.
/// It never sees a link, a handle or a secret.
extension Tool {
    private static let user = Command.Operand("USER", "The user name, as given to /register.")
    private static let factor = Command.Option(
        "factor", .one("FACTOR"), "What was lost: totp, hotp, or push for all phones (required).")

    static let recoverUser = Subcommand(
        command: Command(
            "user recover", "Has a link mailed to a user who has lost an app, a token or all phones.",
            operands: [user], options: [OperatorStore.usersWebsite, factor],
            notes: """
                The link goes to the user's confirmed mail address; it is valid for 15 minutes and works once. The user then
                gives a second proof at the website. A user who has none needs 'user approve-recovery' after the link was opened.
                See docs/websites/recovery.md.
                """)
    ) { invocation throws(Failure) in
        let help = "Run 'twoefay user recover --help' for usage."
        let lost = try invocation.lostFactor(help)
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let user = try store.user(invocation)
        let website = try store.recoverable(user)
        let operation = try store.newOperation()
        let new: NewRecovery
        let drawn = OperationSecret(drawnFrom: SystemRandomness())
        let delivery = try store.delivery(to: user, of: website, as: operation)
        do throws(CryptoFailure) {
            new = try NewRecovery(lost, of: user.id, by: .operator, drawn, delivery)
        } catch {
            throw Failure(.failed, "\(error)", next: "Nothing was changed. " + Failure.cryptoRemedy)
        }
        switch try store.read(Recoveries.start(new, as: operation)) {
        case .started(let address):
            return Report(
                "The relay mails a link to \(address), valid until \(new.life.expiresAt.rfc3339).",
                json: .object([
                    "user": .string(user.username), "website": .string(user.website), "factor": .string(lost.rawValue),
                    "recovery": .string(new.id.text), "sent_to": .string(address),
                    "expires_at": .string(new.life.expiresAt.rfc3339),
                ]))
        case .limited:
            throw Failure(
                .conflict, "\(user.fullName) got \(NewRecovery.most) links in the last hour",
                next: "The newest link is still valid. Run it again in 15 minutes.")
        case .impossible:
            throw Failure(
                .conflict,
                "\(user.fullName) is not active, has no confirmed mail address, or has no \(lost.lostName) to lose",
                next: "'twoefay user show' shows the user. Without an address, use 'twoefay user activate' or "
                    + "'twoefay user remove-factor' after you have checked the person's identity.")
        }
    }

    static let approveRecovery = Subcommand(
        command: Command(
            "user approve-recovery", "Vouches for a user whose link was opened, in place of a second proof.",
            operands: [user],
            options: [
                OperatorStore.usersWebsite, factor,
                .init("code", .one("CODE"), "The six digits that the website shows to the user (required)."),
                .init("by", .one("NAME"), "The person who checked the user's identity (required)."),
                .init("note", .one("TEXT"), "How the identity was checked (required)."),
            ],
            notes: """
                Let the person read the code from the page that the link opened. A recovery with another code is one of
                somebody else, who reads the same mailbox; it ends when this one is approved. The change is announced to the user's phones and mail
                addresses. It waits for the hours of the policy recovery-wait, unless a phone approves it. The audit
                keeps both texts: do not write the number of a document.
                """)
    ) { invocation throws(Failure) in
        let help = "Run 'twoefay user approve-recovery --help' for usage."
        let lost = try invocation.lostFactor(help)
        let code = try invocation.words("code", limit: 16, help)
        let (by, note) = (
            try invocation.words("by", limit: Identities.byLimit, help),
            try invocation.words("note", limit: Identities.documentLimit, help)
        )
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let user = try store.user(invocation)
        let website = try store.recoverable(user)
        let open = try store.recoveries(of: user, lost)
        guard let row = SpokenCode.recovery(code, among: open, at: store.now) else {
            throw store.noSuchCode(user, lost, open)
        }
        let operation = try store.newOperation()
        let delivery = try store.delivery(to: user, of: website, as: operation)
        let asks = website.policy.factors.contains(.push) && website.policy.answers != .website
        let announcement = try asks ? RecoveryAnnouncement(store.newOperation(), sender: nil, at: store.now) : nil
        let drawn = OperationSecret(drawnFrom: SystemRandomness())
        guard let life = try? row.life.proved(by: .operator, wait: website.policy.wait, at: store.now) else {
            throw Failure(
                .conflict, "the recovery has ended",
                next: "Nothing was changed. To begin another one: twoefay user recover")
        }
        let proving: RecoveryProving
        do throws(CryptoFailure) {
            proving = try RecoveryProving(
                row, life, by: .operator, nil, note: "\(by): \(note)", announcement: announcement, drawn, delivery)
        } catch {
            throw Failure(.failed, "\(error)", next: "Nothing was changed. " + Failure.cryptoRemedy)
        }
        guard try store.read(Recoveries.proved(proving, as: operation)) else {
            throw Failure(
                .conflict, "the user or the recovery has changed in the meantime",
                next: "Nothing was changed. Run it again.")
        }
        // The relay has not mailed the announcement yet, with which the wait begins.
        let hours = website.policy.recoveryWait
        let earliest = life.readyAt?.rfc3339 ?? ""
        return Report(
            """
            The recovery of \(user.fullName) is approved. The wait of \(hours) h begins when a mail server accepts the
            announcement. So the change is possible from \(earliest) on at the earliest, unless a phone approves it.
            """,
            json: .object([
                "user": .string(user.username), "website": .string(user.website), "factor": .string(lost.rawValue),
                "recovery": .string(row.id.text), "wait_hours": .integer(Int64(hours)),
                "earliest_at": .string(earliest), "by": .string(by), "note": .string(note),
            ]))
    }

    static let cancelRecovery = Subcommand(
        command: Command(
            "user cancel-recovery", "Cancels all recoveries of a lost factor, and their links.", operands: [user],
            options: [OperatorStore.usersWebsite, factor])
    ) { invocation throws(Failure) in
        let lost = try invocation.lostFactor("Run 'twoefay user cancel-recovery --help' for usage.")
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let user = try store.user(invocation)
        let now = store.now
        let open = try store.recoveries(of: user, lost)
        guard !open.isEmpty else { throw OperatorStore.noneOpen(user, lost) }
        guard
            try store.run({ Recoveries.cancelAll(of: user.id, lost, by: .operator, at: now, as: $0) })
        else {
            throw Failure(
                .conflict, "the recoveries have ended in the meantime",
                next: "Nothing is left to cancel. 'twoefay user show' shows whether one has led to a new factor.")
        }
        let lines = open.map { "\($0.id.text) was \($0.life.phase(at: now).rawValue)" }
        return Report(
            (["All recoveries of \(lost.lostName) of \(user.fullName) are cancelled, with what they created:"] + lines)
                .joined(separator: "\n"),
            json: .object([
                "user": .string(user.username), "website": .string(user.website), "factor": .string(lost.rawValue),
                "cancelled": .array(
                    open.map {
                        .object([
                            "recovery": .string($0.id.text), "state": .string($0.life.phase(at: now).rawValue),
                        ])
                    }),
            ]))
    }
}

/// A website with its policies.
private struct RecoverableWebsite {
    let id: WebsiteID
    let policy: Policy
}

extension OperatorStore {
    /// Returns the user's website, if its users can recover factors.
    fileprivate func recoverable(_ user: Accounts.User) throws(Failure) -> RecoverableWebsite {
        let listed = try website(named: user.website)
        let policy = try WebsitePolicy(listed.traits, settings: settings).policy
        guard policy.recoveryURL != nil else {
            throw Failure(
                .conflict, "\(user.website) has no page for recoveries",
                next: "Set it: twoefay website edit \(user.website) --recovery-url https://…")
        }
        guard settings.mail.url != nil else {
            throw Failure(
                .conflict, "no mail server is set, so no link can be sent",
                next: "Set mail.url and mail.from in the settings; see docs/operators/mail.md.")
        }
        return RecoverableWebsite(id: listed.id, policy: policy)
    }

    fileprivate static func noneOpen(_ user: Accounts.User, _ factor: Factor) -> Failure {
        Failure(
            .notFound, "\(user.fullName) has no open recovery of \(factor.lostName)",
            next: "'twoefay user recover' starts one.")
    }

    /// The failure if no opened recovery has the code.
    fileprivate func noSuchCode(
        _ user: Accounts.User, _ factor: Factor, _ open: [RecoveryRow]
    ) -> Failure {
        guard !open.isEmpty else { return Self.noneOpen(user, factor) }
        guard open.contains(where: { $0.life.phase(at: now) == .opened }) else {
            let states = open.map { $0.life.phase(at: now).rawValue }.joined(separator: ", ")
            return Failure(
                .notFound, "the recovery of \(user.fullName) has the state \(states): the link must be opened first",
                next: "'twoefay user recover' has another link mailed.")
        }
        return Failure(
            .conflict, "no opened recovery of \(user.fullName) has this code",
            next: "Let the person read it again, and open the link again if the page does not show it any more. "
                + "'twoefay user cancel-recovery' stops all of them.")
    }

    fileprivate func delivery(
        to user: Accounts.User, of website: RecoverableWebsite, as operation: Operation
    ) throws(Failure) -> RecoveryMail.Delivery {
        RecoveryMail.Delivery(
            to: user.id, of: website.id, language: nil, sender: nil, at: now, as: operation,
            by: try usableSealer(), SystemRandomness())
    }

    /// Returns the open recoveries of a factor, the newest first.
    fileprivate func recoveries(of user: Accounts.User, _ factor: Factor) throws(Failure) -> [RecoveryRow] {
        try read(Recoveries.open(of: user.id, at: now)).filter { $0.factor == factor }
    }
}

extension Invocation {
    fileprivate func lostFactor(_ help: String) throws(Failure) -> Factor {
        guard let text = value("factor") else { throw Failure(.usage, "--factor is missing", next: help) }
        guard let factor = Factor(rawValue: text), Relay.recoverable.contains(factor) else {
            throw Failure(.usage, "--factor must be totp, hotp or push, not \(text)", next: help)
        }
        return factor
    }

    fileprivate func words(_ name: String, limit: Int, _ help: String) throws(Failure) -> String {
        guard let text = value(name) else { throw Failure(.usage, "--\(name) is missing", next: help) }
        if let complaint = FieldRule.line(text, limit: limit) {
            throw Failure(.usage, "--\(name) \(complaint)", next: help)
        }
        return text
    }
}

extension Factor {
    fileprivate var lostName: String { self == .push ? "phones" : rawValue }
}
