import Commands
import Daemon
import EventLoop
import JSON
import Phone
import World

extension Tool {
    static let phoneNotices = Subcommand(
        command: Command(
            "phone notices", "Lists the notices that no phone of the user has fetched, or shows one.",
            options: [
                Keyring.option, Keyring.choice, PhoneOptions.dpop,
                .init("read", .one("ID"), "Fetch this notice and show it; it moves to the archive."),
                .init("archive", .nothing, "List the notices in the archive."),
            ],
            notes: """
                A notice is a short text from the website or the operator. It asks nothing: to answer a login, use
                'phone watch' or 'phone approve'.
                """)
    ) { invocation throws(Failure) in
        let (read, inArchive) = (invocation.value("read"), invocation.has("archive"))
        guard read == nil || !inArchive else {
            throw Failure(
                .usage, "--read and --archive exclude each other: --read finds archived notices, too",
                next: "Run 'twoefay phone notices --help' for usage.")
        }
        let identity = PhoneOptions.identity(invocation)
        let keyring = try Keyring(invocation)
        let entry = try keyring.chosen(invocation)
        return try onLoop { loop throws(Failure) in
            do throws(CallFailure) {
                let phone = try await fresh(entry, identity, keyring, loop)
                defer { phone.close() }
                guard let read else { return list(try await phone.notices(inArchive: inArchive), inArchive) }
                return show(try await phone.fetch(read), entry.enrolment.website)
            } catch {
                if case .refused(let refusal) = error, refusal.status == 404, let read {
                    throw Failure(
                        .notFound, "there is no notice \(ScreenText.visible(read))",
                        next: "'twoefay phone notices' lists the notices.")
                }
                throw Failure(error)
            }
        }
    }

    private static func list(_ notices: [NoticeEntry], _ inArchive: Bool) -> Report {
        let table = Table(
            ["NOTICE", "FROM", "LEFT", "TITLE"],
            notices.map { [$0.id, $0.author.rawValue, $0.createdAt.rfc3339, ScreenText.visible($0.title)] })
        let none = inArchive ? "The archive is empty." : "There are no new notices."
        let json = notices.map { notice -> JSONValue in
            [
                "notice": .string(notice.id), "from": .string(notice.author.rawValue),
                "title": .string(notice.title), "created_at": .string(notice.createdAt.rfc3339),
                "read_at": notice.readAt.map { .string($0.rfc3339) } ?? .null,
            ]
        }
        return Report(notices.isEmpty ? none : table.text, json: .object(["notices": .array(json)]))
    }

    private static func show(_ notice: Notice, _ website: String) -> Report {
        var rows = [
            (label: "from", text: notice.author == .website ? "the website \(website)" : "the relay's operator"),
            (label: "left", text: notice.createdAt.rfc3339), (label: "title", text: notice.title),
        ]
        // A line break of the text starts a row, so that no line can look like a row of its own.
        for line in notice.text.split(separator: "\n", omittingEmptySubsequences: false) {
            rows.append((label: "text", text: String(line)))
        }
        return Report(
            ScreenRows.text("A notice; it asks nothing", rows, columns: Keyboard.columns),
            json: .object([
                "notice": .string(notice.id), "from": .string(notice.author.rawValue),
                "title": .string(notice.title), "text": .string(notice.text),
                "created_at": .string(notice.createdAt.rfc3339),
            ]))
    }
}
