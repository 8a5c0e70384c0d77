import Commands
import Daemon
import JSON
import TestSupport
import Testing

/// Every command at the control socket, under every role.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct ControlRoleTests {
    /// A command line, the roles that may run it, and its exit status as a word.
    private struct Row {
        let name: String
        let arguments: [String]
        let roles: Set<ControlRole>
        let word: String
        /// The note of its row in the audit.
        let note: String

        init(
            _ name: String, _ arguments: String..., for roles: Set<ControlRole>, word: String = "ok",
            note: String? = nil
        ) {
            self.name = name
            self.arguments = arguments
            self.roles = roles
            self.word = word
            self.note = note ?? name
        }

        var words: [String] { name.split(separator: " ").map(String.init) + arguments }
    }

    private static let everybody = Set(ControlRole.allCases)
    private static let id = String(repeating: "0", count: 32)
    private static let shop = "--website=shop"

    private static let reading: [Row] = [
        Row("website list", for: everybody), Row("website show", "shop", for: everybody),
        Row("user list", for: everybody), Row("user search", "ad", for: everybody, note: "user search (text)"),
        Row("user find", "ada@example.com", for: everybody, note: "user find (mail address)"),
        Row("user show", "ada", shop, for: everybody),
        Row("user logins", "ada", shop, for: everybody), Row("user expiring", for: everybody),
        Row("device list", "ada", shop, for: everybody), Row("notice list", "ada", shop, for: everybody),
        Row("status", for: everybody),
        Row("audit tail", for: [.auditor, .operator]),
        Row("audit search", "--event=user.", for: [.auditor, .operator], note: "audit search (event)"),
        Row("outbox list", for: [.auditor, .operator]), Row("keys list", for: [.auditor, .operator]),
        Row("directory list", for: [.auditor, .operator]), Row("website usage", for: [.auditor, .operator]),
    ]

    private static let helping: [Row] = [
        Row("user lock", "ada", shop, "--reason=call 17", for: [.helpdesk, .operator]),
        Row("user unlock", "ada", shop, for: [.helpdesk, .operator]),
        Row("user activate", "ada", shop, for: [.helpdesk, .operator]),
        Row("user confirm-identity", "ada", shop, "--by=Eve", "--document=passport", for: [.helpdesk, .operator]),
        // The website has no page for recoveries.
        Row("user recover", "ada", shop, "--factor=totp", for: [.helpdesk, .operator], word: "conflict"),
        Row(
            "user approve-recovery", "ada", shop, "--factor=totp", "--code=123456", "--by=Eve", "--note=seen",
            for: [.helpdesk, .operator], word: "conflict"),
        Row("user cancel-recovery", "ada", shop, "--factor=totp", for: [.helpdesk, .operator], word: "not_found"),
        // The policy of the website does not name the factor operator.
        Row("user temporary-code", "ada", shop, for: [.helpdesk, .operator], word: "conflict"),
        Row("user remove-factor", "ada", "totp", shop, for: [.helpdesk, .operator], word: "conflict"),
        Row("notice leave", "ada", "Call us.", "--title=Hello", shop, for: [.helpdesk, .operator]),
        Row("notice withdraw", "ada", id, shop, for: [.helpdesk, .operator], word: "not_found"),
    ]

    private static let operating: [Row] = [
        Row("user export", "ada", shop, for: [.operator]),
        Row("user enable", "ada", shop, for: [.operator], word: "conflict"),
        Row("user expire", "ada", "--never", shop, for: [.operator]),
        Row("user delete", "bob", "--yes", shop, for: [.operator]),
        Row("outbox replay", id, for: [.operator], word: "not_found"),
        Row("outbox drop", id, for: [.operator], word: "not_found"),
        Row("keys roll", "nonces", for: [.operator]), Row("reload", for: [.operator]),
    ]

    /// The commands about one phone. It is revoked at the end.
    private static func ofDevice(_ device: String) -> [Row] {
        [
            Row("device show", device, for: everybody),
            Row("device suspend", device, for: [.helpdesk, .operator]),
            Row("device resume", device, for: [.helpdesk, .operator]),
            Row("device rename", device, "Work", for: [.helpdesk, .operator]),
            // The phone is in no doubt, and has no PIN.
            Row("device verify", device, for: [.helpdesk, .operator], word: "conflict"),
            Row("device unlock-code", device, for: [.helpdesk, .operator], word: "conflict"),
            Row("device revoke", device, "--yes", for: [.helpdesk, .operator]),
        ]
    }

    @Test func tableHasEveryCommand() {
        let rows = Self.reading + Self.helping + Self.operating + Self.ofDevice(Self.id)
        #expect(Set(rows.map(\.name)) == Set(Tool.roles.keys))
        #expect(Set(rows.map(\.name)).count == rows.count)
    }

    @Test(
        .enabled(if: ControlPeer.canChangeAccount, "only root can act as another account"),
        arguments: [StoreKind.file, .mariadb])
    func eachRoleRunsItsCommandsAlone(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind) { settings in
            try ControlPeer.giveRoles(&settings)
            try settings.set("control.requests", to: "1000")
            try settings.set("control.changes", to: "1000")
        }
        ControlPeer.open(fixture.relay)
        _ = try await fixture.registered("bob")
        for role in ControlRole.allCases {
            if role == .auditor { _ = try await fixture.registered("ada") }
            let phone = "\(role.rawValue)-phone"
            let device = try await fixture.bind(try await fixture.registered(phone)).device
            let rows = Self.reading + Self.helping + Self.operating + Self.ofDevice(device)
            let answers = try await ControlPeer.run(
                rows.map(\.words), at: fixture.relay.file("control"), as: ControlPeer.group(of: role))
            try #require(answers.count == rows.count)
            for (row, answer) in zip(rows, answers) {
                if row.roles.contains(role) {
                    #expect(answer.word == row.word, "\(role): \(row.name): \(answer)")
                } else {
                    #expect(answer.word == "failed" && answer.output.isEmpty, "\(role): \(row.name): \(answer)")
                    #expect(answer.failure.contains("\(row.name) needs the role"), "\(role): \(answer)")
                }
            }
            let shown = try await fixture.json(
                "audit", "search", "--event", "control.command", "--actor", "\(role.rawValue) \(ControlPeer.name)")
            let recorded = (shown["rows"]?.array ?? []).compactMap(\.object)
            let words = recorded.map { "\($0["note"]?.string ?? "") \($0["outcome"]?.string ?? "")" }
            // A command that only reads leaves its row when it begins.
            func outcome(_ row: Row) -> String {
                guard row.roles.contains(role) else { return "refused" }
                return Tool.recordedCommands.contains(row.name) ? row.word : "begun"
            }
            #expect(words == rows.map { "\($0.roles.contains(role) ? $0.note : $0.name) \(outcome($0))" })
            // Each row of a command that ran says about whom or what it was.
            for (row, event) in zip(rows, recorded) where row.roles.contains(role) {
                let isOfShop = row.words.contains { $0.contains("shop") || $0 == device }
                #expect((event["website"] == "shop") == isOfShop, "\(row): \(event)")
                #expect((event["device"] == .string(device)) == row.words.contains(device), "\(row): \(event)")
                let user = row.arguments.first == "ada" ? "ada" : row.words.contains(device) ? phone : nil
                if let user { #expect(event["username"] == .string(user), "\(row): \(event)") }
            }
        }
        for role in [ControlRole.helpdesk, .operator] {
            let shown = try await fixture.json(
                "audit", "search", "--event", "user.locked", "--actor", "\(role.rawValue) \(ControlPeer.name)")
            let locked = try #require(shown["rows"]?.array?.first?.object, "\(role)")
            #expect(locked["reason"] == "call 17" && locked["username"] == "ada")
        }
        _ = try await fixture.json("audit", "verify")
        _ = try await fixture.json("rows", "verify")
    }
}
