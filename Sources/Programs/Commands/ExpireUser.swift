import Daemon
import Domain
import JSON
import Storage
import World

extension Tool {
    static let expireUser = Subcommand(
        command: Command(
            "user expire", "Sets the time from which no login of a user succeeds, or removes it.",
            operands: [.init("USER", "The user name, as given to /register.")],
            options: [
                OperatorStore.usersWebsite,
                .init(
                    "at", .one("DATE"),
                    "The last day in UTC, such as 2026-12-31, or a time such as 2026-12-31T23:00:00Z."),
                .init("never", .nothing, "The user does not expire."),
            ],
            notes: """
                The phones and factors of the user expire with the user. Nothing is deleted: another time, or --never, makes
                all of them valid again. The website can set the time, too, but it can only shorten one that you have set.
                """)
    ) { invocation throws(Failure) in
        let expiresAt = try expiry(invocation)
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let user = try store.user(invocation)
        let isSet = try store.run { Expiries.set(user.id, from: user.expiresAt, to: expiresAt, at: store.now, as: $0) }
        guard isSet else {
            throw Failure(
                .conflict, "\(user.fullName) was changed or deleted in the meantime",
                next: "Nothing was changed. 'twoefay user show' shows the user's end, if the user is there.")
        }
        let text =
            switch expiresAt {
            case nil: "\(user.fullName) does not expire."
            case let at? where at <= store.now: "\(user.fullName) has expired at \(at.rfc3339): no login succeeds."
            case let at?: "\(user.fullName) expires at \(at.rfc3339)."
            }
        return Report(
            text,
            json: .object([
                "user": .string(user.username), "website": .string(user.website),
                "expires_at": .text(expiresAt?.rfc3339), "previous": .text(user.expiresAt?.rfc3339),
            ]))
    }

    private static func expiry(_ invocation: Invocation) throws(Failure) -> Timestamp? {
        let next = "Run 'twoefay user expire --help' for usage."
        guard let text = invocation.value("at") else {
            guard invocation.has("never") else { throw Failure(.usage, "--at or --never is missing", next: next) }
            return nil
        }
        guard !invocation.has("never") else {
            throw Failure(.usage, "--at and --never exclude each other", next: next)
        }
        // A day is the last one on which the user can log in.
        let day = Timestamp(rfc3339: "\(text)T00:00:00Z").map { $0 + .seconds(86_400) }
        guard let at = day ?? Timestamp(rfc3339: text), Timestamp.choosable.contains(at) else {
            throw Failure(
                .usage,
                "--at must be a day such as 2026-12-31, or a time such as 2026-12-31T23:00:00Z, before 9999-12-31, not "
                    + FieldRule.visible(text) + "; --never is for a user who does not expire", next: next)
        }
        return at
    }

    static let listExpiring = Subcommand(
        command: Command(
            "user expiring", "Lists the active users who expire within seven days, the next one first.",
            options: [.init("expired", .nothing, "List the users who have expired instead, the last one first.")])
    ) { invocation throws(Failure) in
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let isPast = invocation.has("expired")
        let found = try store.read(isPast ? Expiries.past(at: store.now) : Expiries.soon(at: store.now))
        return Report(
            found.text(none: isPast ? "No user has expired." : "No user expires within seven days.", isPast: isPast),
            json: .object(["users": .array(found.users.map(\.json)), "count": .integer(found.count)]))
    }
}

extension Expiries.Found {
    fileprivate func text(none: String, isPast: Bool) -> String {
        guard !users.isEmpty else { return none }
        let table = Table(
            ["USER", "WEBSITE", isPast ? "EXPIRED" : "EXPIRES"],
            users.map { [$0.username, $0.website, $0.expiresAt.rfc3339] }
        ).text
        let more = count - Int64(users.count)
        return more > 0 ? "\(table)\n\nand \(more) more" : table
    }
}

extension Expiries.Expiring {
    var json: JSONValue {
        .object([
            "user": .string(username), "website": .string(website), "expires_at": .string(expiresAt.rfc3339),
        ])
    }
}
