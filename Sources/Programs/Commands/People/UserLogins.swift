import Daemon
import Domain
import JSON
import Storage
import World

extension Tool {
    static let userLogins = Subcommand(
        command: Command(
            "user logins", "Lists the logins of a user, the newest first.",
            operands: [.init("USER", "The user name, as given to /register.")],
            options: [
                OperatorStore.usersWebsite,
                .init("limit", .one("N"), "The number of logins, 1 to \(LoginHistory.most) (default: 20)."),
                .init("before", .one("TIME"), "Only logins before this time, such as 2026-12-31T12:00:00Z."),
            ],
            notes: """
                Logins are kept for retention.logins. IP address and place are those that the website and the geolocation
                database gave, as the phone showed them. For older pages: --before with the last time of the list.
                """)
    ) { invocation throws(Failure) in
        let help = "Run 'twoefay user logins --help' for usage."
        guard let limit = Int(invocation.value("limit") ?? "20"), (1...LoginHistory.most).contains(limit) else {
            throw Failure(.usage, "--limit must be a number from 1 to \(LoginHistory.most)", next: help)
        }
        let end = invocation.value("before").map { Timestamp(rfc3339: $0) } ?? Timestamp.choosable.upperBound
        guard let end else {
            throw Failure(.usage, "--before must be a time such as 2026-12-31T12:00:00Z", next: help)
        }
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let user = try store.user(invocation)
        let logins = try store.read(LoginHistory.logins(of: user.id, before: end, most: limit))
        let json = JSONValue.object([
            "user": .string(user.username), "website": .string(user.website),
            "logins": .array(logins.map { $0.json(at: store.now) }),
        ])
        guard let last = logins.last else { return Report("\(user.fullName) has no login in the store.", json: json) }
        let table = Table(LoginHistory.Login.headings, logins.map { $0.row(at: store.now) }).text
        guard logins.count == limit else { return Report(table, json: json) }
        return Report("\(table)\n\nFor earlier logins: --before \(last.askedAt.rfc3339)", json: json)
    }
}

extension LoginHistory.Login {
    fileprivate static let headings = ["ASKED", "RESULT", "FACTOR", "PHONE", "IP ADDRESS", "PLACE", "ACTION"]

    /// The members of the context, such as `ip`.
    private var shown: JSONObject? { context.flatMap { try? JSONReader.read($0) }?.object }

    fileprivate func row(at now: Timestamp) -> [String] {
        let (seen, shown) = (life.seen(at: now), shown)
        let check = placeCheck == .far ? " (phone far away)" : ""
        return [
            askedAt.rfc3339, [seen.result.rawValue, seen.reason?.rawValue].compactMap(\.self).joined(separator: ", "),
            factor?.rawValue ?? "none", deviceName ?? device?.text ?? "", shown?["ip"]?.string ?? "",
            (shown?["place"]?.string ?? "") + check, shown?["action"]?.string ?? "",
        ]
    }

    fileprivate func json(at now: Timestamp) -> JSONValue {
        let seen = life.seen(at: now)
        return .object([
            "challenge": .string(id.text), "asked_at": .string(askedAt.rfc3339),
            "decided_at": .text(decidedAt?.rfc3339), "login": .string(seen.result.rawValue),
            "reason": .text(seen.reason?.rawValue), "factor": .text(factor?.rawValue),
            "proof": .text(proof?.rawValue), "uv": .text(uv), "device": .text(device?.text),
            "device_name": .text(deviceName), "phone_place": .text(placeCheck?.rawValue),
            "approval": .bool(isApproval), "context": shown.map { .object($0) } ?? .null,
        ])
    }
}
