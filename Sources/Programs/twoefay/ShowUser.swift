import Daemon
import Domain
import JSON
import Relay
import Storage
import World

extension Tool {
    static let showUser = Subcommand(
        command: Command(
            "user show", "Shows a user: state, newest login, phones, factors that are codes.",
            operands: [.init("USER", "The name that the website gave.")], options: [OperatorStore.usersWebsite])
    ) { invocation throws(Failure) in
        let desk = try OperatorStore(try Settings.load(invocation))
        defer { desk.close() }
        let user = try desk.user(invocation)
        return Report(user.text(at: desk.now), json: user.json(at: desk.now))
    }
}

extension Accounts.User {
    fileprivate func text(at now: Timestamp) -> String {
        var lines = ["\(called) is \(state.rawValue), known since \(createdAt.rfc3339)."]
        for (name, value) in [
            ("Display name", displayName), ("Language", language), ("E-mail", email), ("Phone number", phone),
            ("A factor of their own since", provedAt?.rfc3339), ("In log and audit", id.text),
        ] {
            if let value { lines.append("\(name): \(value)") }
        }
        if let challenge {
            lines.append(
                "Newest login: \(challenge.id.text), asked \(challenge.askedAt.rfc3339): \(challenge.outcome(at: now))")
        }
        lines.append("")
        lines.append(
            devices.isEmpty
                ? "No phone is bound. The website binds one, or: "
                    + "twoefay user activate \(username.asShellWord) --website \(website)"
                : Table(Accounts.Device.headings, devices.map(\.row)).text)
        if !factors.isEmpty { lines.append("\n" + Table(CodeFactor.headings, factors.map(\.row)).text) }
        if let lockedAt = codes.lockedAt {
            lines.append(
                "\nToo many codes were wrong: since \(lockedAt.rfc3339) none is taken. Phones can still approve. "
                    + "The user reopens codes with a phone at the website, or: \(unlocking)")
        } else if codes.failures > 0 {
            let last = codes.failedAt?.rfc3339 ?? "before"
            lines.append("\nWrong codes in a row: \(codes.failures), the last one \(last).")
        }
        switch state {
        case .active: break
        case .locked:
            lines.append(
                stoppedBy == .operator
                    ? "\nAn operator locked the user, and only an operator lifts it: \(unlocking)"
                    : "\nToo many answers were wrong. The website may lift that, or: \(unlocking)")
        case .frozen:
            lines.append(
                "\nThe user said that a login was not theirs: somebody has their password. Once that is changed: \(unlocking)"
            )
        }
        return lines.joined(separator: "\n")
    }

    private var unlocking: String { "twoefay user unlock \(username.asShellWord) --website \(website)" }
}
