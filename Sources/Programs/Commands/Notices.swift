import Daemon
import Domain
import JSON
import Relay
import Storage
import World

/// The commands for notices: short texts that the phones of a user show.
extension Tool {
    static let leaveNotice = Subcommand(
        command: Command(
            "notice leave", "Leaves a short text for a user, which the user's phones show.",
            operands: [
                .init("USER", "The user name, as given to /register."),
                .init(
                    "TEXT", "The text, with at most \(NoticeLimits.text) characters; - reads it from standard input."),
            ], options: [OperatorStore.usersWebsite, title],
            notes: """
                The phone shows that the text is from the operator. It asks nothing: never write a code, a number or a link
                into it. 'notice list' shows whether a phone has fetched it.
                """)
    ) { invocation throws(Failure) in
        let help = "Run 'twoefay notice leave --help' for usage."
        guard let title = invocation.value(title.name) else { throw Failure(.usage, "--title is missing", next: help) }
        let text = invocation.noticeOperands[1]
        if let complaint = FieldRule.line(title, limit: NoticeLimits.title) {
            throw Failure(.usage, "--title \(complaint)", next: help)
        }
        if let complaint = FieldRule.lines(text, limit: NoticeLimits.text) {
            throw Failure(.usage, "TEXT \(complaint)", next: help)
        }
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let user = try store.user(invocation)
        let operation = try store.newOperation()
        let notice = NewNotice(
            id: operation.identifier("notice"), user: user.id, author: .operator, title: title, text: text,
            at: store.now)
        guard try store.read(NoticeRows.leave(notice, as: operation)) else {
            throw Failure(
                .conflict,
                "\(user.fullName) has \(NoticeLimits.unread) notices already that no phone has fetched, or "
                    + "\(NoticeLimits.stored) in all",
                next: "'twoefay notice list' shows them, and 'twoefay notice withdraw' deletes one.")
        }
        return Report(
            "The notice \(notice.id.text) is left for \(user.fullName).",
            json: .object([
                "notice": .string(notice.id.text), "user": .string(user.username), "website": .string(user.website),
                "created_at": .string(notice.at.rfc3339),
            ]))
    }

    static let listNotices = Subcommand(
        command: Command(
            "notice list", "Lists the notices of a user, the newest first, and shows which were fetched.",
            operands: [.init("USER", "The user name, as given to /register.")], options: [OperatorStore.usersWebsite])
    ) { invocation throws(Failure) in
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let user = try store.user(invocation)
        let notices = try store.read(NoticeRows.all(of: user.id))
        let table = Table(
            ["NOTICE", "FROM", "LEFT", "FETCHED", "TITLE"],
            notices.map { notice in
                [
                    notice.id.text, notice.author.rawValue, notice.createdAt.rfc3339, notice.readAt?.rfc3339 ?? "",
                    notice.title,
                ]
            })
        return Report(
            notices.isEmpty ? "\(user.fullName) has no notices." : table.text,
            json: .object([
                "user": .string(user.username), "website": .string(user.website),
                "notices": .array(notices.map { .object($0.json) }),
            ]))
    }

    static let withdrawNotice = Subcommand(
        command: Command(
            "notice withdraw", "Deletes a notice, whoever left it, also from the archive.",
            operands: [
                .init("USER", "The user name, as given to /register."),
                .init("NOTICE", "The id of 32 digits, as in 'notice list'."),
            ], options: [OperatorStore.usersWebsite])
    ) { invocation throws(Failure) in
        let next = "'twoefay notice list USER --website NAME' shows the notices of a user."
        guard let id = NoticeID(invocation.operand(1)) else {
            throw Failure(.usage, "NOTICE must be the 32 digits of a notice's id", next: next)
        }
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let user = try store.user(invocation)
        let withdrawal = NoticeWithdrawal(id, of: user.id, by: .operator, at: store.now)
        guard try store.run({ NoticeRows.withdraw(withdrawal, as: $0) }) else {
            throw Failure(.notFound, "\(user.fullName) has no notice \(id.text)", next: next)
        }
        return Report(
            "The notice \(id.text) of \(user.fullName) is deleted.",
            json: .object([
                "notice": .string(id.text), "user": .string(user.username), "website": .string(user.website),
            ]))
    }

    private static let title = Command.Option(
        "title", .one("TEXT"), "The title, with at most \(NoticeLimits.title) characters (required).")
}

extension Invocation {
    /// The operands of `notice leave`, with the text of standard input in place of `-`. A relay has
    /// no input: the tool has read it before.
    var noticeOperands: [String] {
        guard operand(1) == "-", host == nil else { return operands }
        var text = ""
        while let line = readLine(strippingNewline: false) { text += line }
        while text.last == "\n" { text.removeLast() }
        return [operand(0), text]
    }
}

extension Notice {
    fileprivate var json: JSONObject {
        [
            "notice": .string(id.text), "from": .string(author.rawValue), "title": .string(title),
            "text": .string(text), "created_at": .string(createdAt.rfc3339),
            "read_at": readAt.map { .string($0.rfc3339) } ?? .null,
        ]
    }
}
