import Daemon
import Domain
import JSON
import Relay
import Storage
import World

extension Tool {
    static let temporaryCode = Subcommand(
        command: Command(
            "user temporary-code", "Gives out a code with which a user who lost every factor can log in.",
            operands: [.init("USER", "The user name, as given to /register.")],
            options: [
                OperatorStore.usersWebsite,
                .init("valid", .one("TIME"), "How long the code is valid, 5m to 24h (default: 24h)."),
                .init(
                    "uses", .one("N"),
                    "How often it works, \(TemporaryCode.uses.lowerBound) to \(TemporaryCode.uses.upperBound) (default: 1)."
                ),
                .init("may-enrol", .nothing, "It may also approve that the user binds a phone, which is one use."),
                .init("revoke", .nothing, "Make the user's code void, and what it has approved; give out none."),
                Invocation.yes,
            ],
            notes: """
                Check first who the person is, then read the code out. It is shown only now. Typed on the website, it logs the user
                in with the lowest assurance, as the factor operator; a website that demands more never accepts it. The policy
                factors of the website must name operator. A wrong code counts as a guess. The code lifts no lock and no freeze.
                A user has one code: a further one replaces it after a confirmation, or with --yes. The user and the website are
                told when a code is given out, and when it is used. Never call somebody to offer a code.
                """)
    ) { invocation throws(Failure) in
        let wanted = try WantedTemporaryCode(invocation)
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let user = try store.user(invocation)
        if invocation.has("revoke") { return try revoke(user, invocation, store) }
        try store.requireMayHaveTemporaryCode(user)
        let former = try store.read(TemporaryCodes.shown(of: user.id))
        if let former, former.isUsable(at: store.now) {
            try invocation.confirm(
                "\(user.fullName) has a temporary code, valid until \(former.expiresAt.rfc3339). It becomes void, but what it "
                    + "has approved stays (--revoke ends that, too).")
        }
        let sealer = try store.usableSealer()
        let operation = try store.newOperation()
        let text = TemporaryCode.text(SystemRandomness().bytes(TemporaryCode.bytes))
        guard
            let new = NewTemporaryCode(
                text, for: user.id, uses: wanted.uses, mayEnrol: wanted.mayEnrol, life: wanted.life, at: store.now,
                as: operation, by: sealer)
        else {
            throw Failure(.failed, "the code could not be made", next: "Nothing was changed. " + Failure.cryptoRemedy)
        }
        guard try store.read(TemporaryCodes.issue(new, replacing: former?.factor, as: operation)) else {
            throw Failure(
                .conflict, "\(user.fullName) was changed in the meantime",
                next: "Nothing was changed. Run it again; 'twoefay user show' shows the user.")
        }
        return try report(text, new, user, store)
    }

    private static func report(
        _ code: String, _ new: NewTemporaryCode, _ user: Accounts.User, _ store: OperatorStore
    ) throws(Failure) -> Report {
        let told = try store.told(user)
        let times = new.uses == 1 ? "once" : "\(new.uses) times"
        let use =
            new.mayEnrol
            ? "It logs in, or approves that a phone is bound; each is one use."
            : "It logs in, and binds no phone."
        return Report(
            """
            \(code)
            This code is for \(user.fullName), valid until \(new.expiresAt.rfc3339), \(times). \(use)
            Read it out only to the person whom you have identified. It is not shown again.
            To revoke it: \(user.revokingTemporaryCode)
            """ + (told.text.isEmpty ? "" : "\n\n\(told.text)"),
            json: .object([
                "user": .string(user.username), "website": .string(user.website), "code": .string(code),
                "expires_at": .string(new.expiresAt.rfc3339), "uses": .integer(Int64(new.uses)),
                "may_enrol": .bool(new.mayEnrol), "announcements": told.json,
            ]))
    }

    private static func revoke(
        _ user: Accounts.User, _ invocation: Invocation, _ store: OperatorStore
    ) throws(Failure) -> Report {
        for option in ["valid", "uses"] where invocation.value(option) != nil {
            throw Failure(
                .usage, "--\(option) and --revoke exclude each other",
                next: "Run 'twoefay user temporary-code --help' for usage.")
        }
        guard !invocation.has("may-enrol") else {
            throw Failure(
                .usage, "--may-enrol and --revoke exclude each other",
                next: "Run 'twoefay user temporary-code --help' for usage.")
        }
        guard try store.run({ TemporaryCodes.revoke(user.id, at: store.now, as: $0) }) else {
            throw Failure(
                .conflict, "\(user.fullName) has no temporary code",
                next: "Nothing was changed. It has expired, or there was none.")
        }
        return Report(
            "The temporary code of \(user.fullName) is void, and so is what it has approved and nobody has used yet. Logins and "
                + "phones stay: see 'twoefay user logins' and 'twoefay device list'.",
            json: .object([
                "user": .string(user.username), "website": .string(user.website), "code": .null,
            ]))
    }
}

extension OperatorStore {
    /// Throws unless a temporary code would let the user in: by the user's state, and by the policy
    /// of the website and of the user's group.
    fileprivate func requireMayHaveTemporaryCode(_ user: Accounts.User) throws(Failure) {
        try user.requireActive(at: now)
        let website = try WebsitePolicy(try website(named: user.website).traits, settings: settings).policy
        let policy: Policy
        do throws(Policy.Fault) {
            policy = try user.policy.map { text throws(Policy.Fault) in try website.changed(by: text) } ?? website
        } catch {
            throw Failure(
                .conflict, "the policy of the group of \(user.fullName) cannot be read: \(error.message)",
                next: "Nothing was changed. Correct the group in the settings of the directory.")
        }
        let way = "To bind a phone instead, after you have checked who the person is: \(user.wayBack)"
        guard policy.factors.contains(.operator) else {
            let isOfGroup = website.factors.contains(.operator)
            let factors = (policy.factors + [.operator]).map(\.rawValue).joined(separator: ",")
            throw Failure(
                .conflict,
                "\(isOfGroup ? "the group of \(user.fullName)" : user.website) does not allow temporary codes",
                next: "Nothing was changed. "
                    + (isOfGroup
                        ? "To allow them, add operator to the group's policy factors. "
                        : "To allow them: twoefay website edit \(user.website) --factors \(factors). ") + way)
        }
        guard policy.minAssurance <= Assurance(factor: .operator, numberAsked: false) else {
            throw Failure(
                .conflict,
                "\(user.website) demands the assurance \(policy.minAssurance.rawValue), and a temporary code has low",
                next: "Nothing was changed. \(way)")
        }
    }
}

extension Accounts.User {
    /// Throws unless a code of the user would be accepted now.
    fileprivate func requireActive(at now: Timestamp) throws(Failure) {
        try requireEnabled()
        let words = "\(username.asShellWord) --website \(website)"
        switch state.seen(expiresAt, at: now) {
        case .active, .disabled: break
        case .frozen:
            throw Failure(
                .conflict, "\(fullName) is frozen after a report of fraud, and a temporary code lifts no freeze",
                next: "Nothing was changed. After the user has a new password: twoefay user unlock \(words)")
        case .locked:
            throw Failure(
                .conflict, "\(fullName) is locked, and a temporary code lifts no lock",
                next: "Nothing was changed. After you have checked why: twoefay user unlock \(words)")
        case .expired:
            throw Failure(
                .conflict, "\(fullName) has expired, so no login succeeds",
                next: "Nothing was changed. To set another time: twoefay user expire \(words) --at DATE, or --never")
        }
        guard !codes.isLocked else {
            throw Failure(
                .conflict, "the codes of \(fullName) are locked after too many wrong ones",
                next: "Nothing was changed. To accept codes again: twoefay user unlock \(words)")
        }
    }
}
