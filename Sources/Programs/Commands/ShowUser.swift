import Daemon
import Domain
import JSON
import Relay
import Storage
import World

extension Tool {
    static let showUser = Subcommand(
        command: Command(
            "user show", "Shows a user: state, newest login, phones and code factors.",
            operands: [.init("USER", "The user name, as given to /register.")], options: [OperatorStore.usersWebsite])
    ) { invocation throws(Failure) in
        let store = try OperatorStore(invocation)
        defer { store.close() }
        var user = try store.user(invocation)
        try store.complete(&user)
        let (told, ways) = (try store.told(user), try? store.waysIn(user))
        let temporary = try store.read(TemporaryCodes.shown(of: user.id))
        let texts = [
            user.text(at: store.now), temporary?.text(of: user, at: store.now) ?? "", ways?.text(of: user) ?? "",
            told.text,
        ]
        guard case .object(var object) = user.json(at: store.now) else { return Report("", json: .null) }
        object.set("announcements", told.json)
        object.set("temporary_code", temporary?.json(at: store.now) ?? .null)
        object.set("ways_in", ways?.json ?? .null)
        object.set("idle_factors", ways?.idleJSON ?? .null)
        return Report(texts.filter { !$0.isEmpty }.joined(separator: "\n\n"), json: .object(object))
    }
}

extension WaysIn {
    fileprivate var json: JSONValue { .array(usable.map { .string($0.rawValue) }) }

    fileprivate var idleJSON: JSONValue {
        .object(JSONObject(idle.map { ($0.factor.rawValue, .string($0.reason)) }))
    }

    /// The factors that do not count, and a warning if none is left; empty if all of them count.
    fileprivate func text(of user: Accounts.User) -> String {
        var lines = idle.map { "No login ends by \($0.factor.rawValue): \($0.reason)." }
        if usable.isEmpty, !isWebsiteAnswering {
            lines.append(
                "The user has no factor, and cannot log in. After you have checked who the person is: \(user.wayBack)")
        }
        return lines.joined(separator: "\n")
    }
}

extension Accounts.User {
    fileprivate func text(at now: Timestamp) -> String {
        var lines = ["\(fullName) is \(state.seen(expiresAt, at: now).rawValue), registered at \(createdAt.rfc3339)."]
        for (name, value) in [
            ("Display name", displayName), ("Language", language), ("E-mail", email), ("Phone number", phone),
            (UserExpiry.hasPassed(expiresAt, at: now) ? "Expired at" : "Expires at", expiry),
            ("First factor confirmed at", provedAt?.rfc3339), ("Identity confirmed", identity?.text),
            ("Id in log and audit", id.text),
            ("From the directory", directory.map { "\($0), entry \(directoryID ?? "")" }),
            ("Policy of the group", policy),
        ] {
            if let value { lines.append("\(name): \(value)") }
        }
        if let challenge {
            lines.append(
                "Newest login: \(challenge.id.text) at \(challenge.askedAt.rfc3339): \(challenge.outcome(at: now))")
        }
        lines.append("")
        lines.append(
            devices.isEmpty
                ? "No phone is bound. Bind one through the website, or: "
                    + "twoefay user activate \(username.asShellWord) --website \(website)"
                : Table(Accounts.Device.headings, devices.map { $0.row(at: now) }).text)
        lines += devices.compactMap(\.verifyText).map { "\n\($0)" }
        if !factors.isEmpty { lines.append("\n" + Table(CodeFactor.headings, factors.map(\.row)).text) }
        if let lockedAt = codes.lockedAt {
            lines.append(
                "\nCodes are locked since \(lockedAt.rfc3339), after too many wrong ones. Phones can still approve. "
                    + "The user can unlock codes with a phone at the website, or: \(unlocking)")
        } else if codes.failures > 0 {
            let last = codes.failedAt?.rfc3339 ?? "at an unknown time"
            lines.append("\nConsecutive wrong codes: \(codes.failures), the last one \(last).")
        }
        if let blocked = blocked(at: now) { lines.append("\n\(blocked)") }
        if isForged {
            lines.append(
                "\nWarning: the row of this user is not genuine, so no login succeeds, and nothing above is certain. "
                    + Self.verifying)
        }
        let forged = devices.filter(\.view.isReportForged)
        if !forged.isEmpty {
            lines.append(
                "\nWarning: the stored report is not genuine, and is not shown, of "
                    + "\(forged.map(\.view.id.text).joined(separator: ", ")). \(Self.verifying)")
        }
        return lines.joined(separator: "\n")
    }

    /// The expiry with its author, such as `2026-12-31T23:00:00.000Z, set by an operator`.
    private var expiry: String? {
        expiresAt.map {
            "\($0.rfc3339), set by \(expiresBy == .operator ? "an operator: the website can only shorten it" : "the website")"
        }
    }

    /// The explanation of the state; nil for an active user.
    private func blocked(at now: Timestamp) -> String? {
        let returning = priorState ?? .locked
        return switch state.seen(expiresAt, at: now) {
        case .active: nil
        case .locked:
            stoppedBy == .operator
                ? "An operator locked the user, and only an operator can lift this: \(unlocking)"
                : "The user is locked after too many wrong answers. The website can lift this, or: \(unlocking)"
        case .frozen:
            "The user reported a fraudulent login: somebody else knows the password. After it is changed: \(unlocking)"
        case .disabled:
            "The user has left the directory \(directory ?? ""). A sync enables the user on return"
                + (returning == .active ? "" : ", and the user is then \(returning.rawValue)")
                + ". To give the user to the website instead: twoefay user enable \(username.asShellWord) "
                + "--website \(website)"
        case .expired:
            "The user has expired, and no login succeeds. To set another time: "
                + "twoefay user expire \(username.asShellWord) --website \(website) --at DATE, or --never"
        }
    }

    private static let verifying = "'twoefay rows verify' lists such rows."

    private var unlocking: String { "twoefay user unlock \(username.asShellWord) --website \(website)" }
}
