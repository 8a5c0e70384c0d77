import Daemon
import Domain
import JSON
import Storage
import World

/// The commands that list users. They print each page as they read it, so that the size of the
/// store does not matter.
extension Tool {
    private static let website = Command.Option("website", .one("NAME"), "Only the users of this website.")
    private static let state = Command.Option(
        "state", .one("STATE"), "Only users in this state: active, locked, frozen, disabled or expired.",
        choices: ["active", "locked", "frozen", "disabled", "expired"])
    private static let limit = Command.Option("limit", .one("N"), "End after N users (1 to 1000000).")

    static let listUsers = Subcommand(
        command: Command(
            "user list", "Lists the users of all websites, or of one.",
            options: [
                website, state, limit,
                .init("after", .one("USER"), "Begin after this user name; needs --website."),
            ],
            notes: """
                Users come in the order of websites and names, and are printed as they are read. With --json, each user is one
                line, and the last line has the number of users and, after --limit, the name for --after.
                  twoefay --config /etc/twoefay/twoefay.yaml user list --website shop --state frozen
                """)
    ) { invocation throws(Failure) in
        let (state, limit) = (try invocation.state(), try invocation.limit())
        let after = invocation.value("after") ?? ""
        guard after.isEmpty || invocation.has("website") else {
            throw Failure(.usage, "--after needs --website", next: "User names belong to a website.")
        }
        return try UserPrinter(invocation, limit: limit, after: after).print { state == nil || $0.state == state }
    }

    static let searchUsers = Subcommand(
        command: Command(
            "user search", "Searches the users by a part of a name, address or number.",
            operands: [
                .init("TEXT", "A part of a user name, display name, mail address or number, or an id of 32 digits.")
            ], options: [website, state, limit],
            notes: """
                Capital letters do not matter. It reads all users and opens sealed addresses, if it can read the master key, which
                takes some seconds for a hundred thousand users. 'user find' looks for a whole address at once, also for
                former addresses.
                  twoefay --config /etc/twoefay/twoefay.yaml user search lovelace
                """)
    ) { invocation throws(Failure) in
        let (state, limit) = (try invocation.state(), try invocation.limit())
        let wanted = invocation.operand(0).lowercased()
        guard !wanted.isEmpty else {
            throw Failure(.usage, "TEXT must not be empty", next: "'twoefay user list' lists all users.")
        }
        return try UserPrinter(invocation, limit: limit, after: "").print { user in
            (state == nil || user.state == state) && user.has(wanted)
        }
    }
}

extension Invocation {
    fileprivate func state() throws(Failure) -> UserState? {
        guard let text = value("state") else { return nil }
        guard let state = UserState(rawValue: text) else {
            let words = UserState.allCases.map(\.rawValue).joined(separator: ", ")
            throw Failure(
                .usage, "--state must be one of \(words)", next: "Run 'twoefay \(command.name) --help' for usage.")
        }
        return state
    }

    fileprivate func limit() throws(Failure) -> Int {
        guard let text = value("limit") else { return .max }
        guard let limit = Int(text), (1...1_000_000).contains(limit) else {
            throw Failure(
                .usage, "--limit must be a number from 1 to 1000000",
                next: "Run 'twoefay \(command.name) --help' for usage.")
        }
        return limit
    }
}

/// Prints users page by page.
private struct UserPrinter {
    private let store: OperatorStore
    private let websites: [Websites.Listed]
    private let invocation: Invocation
    private let isJSON: Bool
    private let limit: Int
    private let after: String
    private let progress: ProgressLines

    init(_ invocation: Invocation, limit: Int, after: String) throws(Failure) {
        store = try OperatorStore(invocation)
        self.invocation = invocation
        isJSON = invocation.has("json")
        self.limit = limit
        self.after = after
        progress = invocation.progress()
        websites =
            if let name = invocation.value("website") { [try store.website(named: name)] } else {
                try store.read(Websites.list()).sorted { $0.name < $1.name }
            }
    }

    /// Prints the users that match. Returns the summary.
    func print(_ matches: (UserList.Entry) -> Bool) throws(Failure) -> Report {
        defer { store.close() }
        let width = max(7, websites.map(\.name.count).max() ?? 0)
        var (count, read) = (0, 0)
        for website in websites {
            var last = after
            while true {
                let page = try store.read(UserList.page(of: website.id, after: last, at: store.now))
                var lines = ""
                for user in page {
                    last = user.username
                    guard matches(user) else { continue }
                    if count == 0, !isJSON { lines += UserList.Entry.heading(width) + "\n" }
                    lines += (isJSON ? user.line(website.name) : user.row(website.name, width)) + "\n"
                    count += 1
                    guard count < limit else { break }
                }
                invocation.say(lines)
                read += page.count
                // At a terminal, the list itself shows that it goes on.
                if lines.isEmpty || !invocation.isOnTerminal { progress.show("\(read) users read, \(count) listed") }
                if count == limit { return summary(count, website.name, next: last) }
                guard page.count == UserList.pageSize else { break }
            }
        }
        return summary(count, "", next: nil)
    }

    private func summary(_ count: Int, _ website: String, next: String?) -> Report {
        var text = count == 0 ? "No user matches." : "\(count) user\(count == 1 ? "" : "s")."
        if let next { text += " The list ends at the limit, after \(next) of \(website)." }
        return Report(
            text,
            json: .object([
                "count": .integer(Int64(count)), "website": next == nil ? .null : .string(website),
                "after": .text(next),
            ]))
    }
}

extension UserList.Entry {
    /// Columns of a fixed width come first, because the widths of the others are not known before
    /// the last page.
    fileprivate static func heading(_ width: Int) -> String {
        "STATE     CODES   REGISTERED                " + padded("WEBSITE", width) + "  USER"
    }

    fileprivate func row(_ website: String, _ width: Int) -> String {
        Self.padded(state.rawValue, 8) + "  " + Self.padded(areCodesLocked ? "locked" : "open", 6) + "  "
            + createdAt.rfc3339 + "  " + Self.padded(website, width) + "  " + username
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    fileprivate func line(_ website: String) -> String {
        JSONWriter.text(
            .object([
                "user": .string(username), "website": .string(website), "id": .string(id.text),
                "state": .string(state.rawValue), "codes": .string(areCodesLocked ? "locked" : "open"),
                "display_name": .text(displayName), "email": .text(email), "phone": .text(phone),
                "directory": .text(directory), "expires_at": .text(expiresAt?.rfc3339),
                "created_at": .string(createdAt.rfc3339),
            ]))
    }

    /// Whether a text in small letters is a part of what identifies the user. An address that could
    /// not be opened matches nothing.
    fileprivate func has(_ wanted: String) -> Bool {
        let texts = [username, displayName] + [email, phone].filter { $0?.hasPrefix("sealed:") != true }
        return id.text == wanted || texts.contains { $0?.lowercased().contains(wanted) == true }
    }
}
