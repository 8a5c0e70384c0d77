import Daemon
import Glibc
import JSON
import TestSupport
import Testing

/// The control socket of the built relay, and the tool at its other end.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct ControlSocketTests {
    private static func relay(
        _ change: (inout String) throws -> Void = { _ in }
    ) async throws -> RunningRelay {
        let relay = try await RunningRelay.start { settings in
            try ControlPeer.giveRoles(&settings)
            try change(&settings)
        }
        ControlPeer.open(relay)
        return relay
    }

    private static func reload(_ relay: RunningRelay, _ options: String...) async throws -> Child.Ended {
        try await Child.run(try BuiltProgram.twoefay.path, ["--config", relay.settings, "reload"] + options)
    }

    private static func line(of key: String, in relay: RunningRelay) throws -> Int {
        let lines = try TextFile.read(relay.settings).split(separator: "\n", omittingEmptySubsequences: false)
        return try #require(lines.firstIndex { $0.hasPrefix("\(key):") }) + 1
    }

    // MARK: Reload

    @Test func reloadReportsTheOutcome() async throws {
        let relay = try await Self.relay()
        let done = try await Self.reload(relay, "--json")
        #expect(done.status == 0 && done.output == "{\"changed\":[],\"restart\":[]}\n", "\(done)")
        try await relay.logged("event=daemon.reloaded")

        try relay.change { settings in
            try settings.set("loops", to: "3")
            try settings.set("policies.lifetime", to: "201")
        }
        let left = try await Self.reload(relay)
        let line = try Self.line(of: "loops", in: relay)
        #expect(left.status == 0 && left.output.contains("twoefay.yaml:\(line):1: loops\n"), "\(left)")
        #expect(left.output.contains("\nChanged: policies.lifetime.\n"), "\(left)")
        let named = try await Self.reload(relay, "--json")
        #expect(named.output == "{\"changed\":[],\"restart\":[{\"setting\":\"loops\",\"line\":\(line)}]}\n", "\(named)")
        try await relay.logged("event=daemon.restart setting=loops path=\(relay.settings) line=\(line) ")

        try TextFile.write("broken", to: relay.file("server.pem"))
        let refused = try await Self.reload(relay)
        #expect(refused.status == 1 && refused.errors.contains("nothing was changed: "), "\(refused)")
        #expect(refused.errors.contains("server.pem"), "\(refused)")
        let rows = try await relay.tool("audit", "search", "--actor", "operator root", "--event", "daemon.", "--json")
        let shown = try #require(try JSONReader.read(Array(rows.utf8)).object?["rows"]?.array).compactMap(\.object)
        let events = shown.map { $0["event"]?.string }
        #expect(events == ["daemon.reloaded", "daemon.reloaded", "daemon.reloaded", "daemon.reload"], "\(rows)")
    }

    /// A broken file of settings is reported with its place.
    @Test func reloadNamesTheFaultOfTheSettings() async throws {
        let relay = try await Self.relay()
        try relay.change { try $0.set("policies.lifetime", to: "1") }
        let socket = relay.file("control")
        let refused = try await Child.run(try BuiltProgram.twoefay.path, ["reload", "--control", socket])
        let text = try TextFile.read(relay.settings).split(separator: "\n", omittingEmptySubsequences: false)
        let line = try #require(text.firstIndex { $0.hasPrefix("  lifetime:") }) + 1
        #expect(refused.status == 1 && refused.errors.contains("twoefay.yaml:\(line):"), "\(refused)")
    }

    /// A command that changes files says how relays get them.
    @Test func commandsNameTheReload() async throws {
        let relay = try await Self.relay()
        let commands = [["server", "renew"], ["authority", "replace", "websites"], ["website", "crl"], ["rekey"]]
        for command in commands {
            let output = try await relay.tool(command)
            #expect(output.contains("twoefay reload on its machine, or systemctl reload"), "\(output)")
        }
        // Without the socket, the relay cannot be asked.
        let installed = try await Installed()
        let output = try await BuiltProgram.twoefay("--config", installed.settings, "server", "renew").output
        #expect(output.contains("systemctl reload") && !output.contains("twoefay reload"), "\(output)")
    }

    /// Each is done, one after the other, whoever asked.
    @Test func reloadsAtOnceAreAllAnswered() async throws {
        let relay = try await Self.relay()
        relay.signal(SIGHUP)
        try await withThrowingTaskGroup(of: Int32.self) { group in
            for _ in 0..<3 { group.addTask { try await Self.reload(relay).status } }
            for try await status in group { #expect(status == 0) }
        }
        try await relay.logged("event=daemon.reloaded", number: 4)
    }

    @Test func withoutTheSettingReloadSaysSo() async throws {
        let relay = try await RunningRelay.start()
        let ended = try await Self.reload(relay)
        #expect(ended.status == 1 && ended.errors.contains("no control.socket"), "\(ended)")
    }

    @Test(.enabled(if: ControlPeer.canChangeAccount, "only root can act as another account"))
    func reloadGivesAndTakesRoles() async throws {
        let relay = try await Self.relay()
        let socket = relay.file("control")
        #expect(try await ControlPeer.run([["user", "list"]], at: socket, as: 4009)[0].failure.contains("no role"))
        try relay.change { settings in
            try settings.set("control.auditors", to: "4009")
            try settings.set("control.helpdesk", to: "")
        }
        #expect(try await Self.reload(relay).status == 0)
        #expect(try await ControlPeer.run([["user", "list"]], at: socket, as: 4009)[0].word == "ok")
        #expect(try await ControlPeer.run([["user", "list"]], at: socket, as: 4002)[0].failure.contains("no role"))
        try relay.change { try $0.set("control.auditors", to: "no-such-group") }
        let refused = try await Self.reload(relay)
        #expect(refused.errors.contains("control.auditors: there is no group no-such-group"), "\(refused)")
        #expect(try await ControlPeer.run([["user", "list"]], at: socket, as: 4009)[0].word == "ok")
    }

    @Test func reloadHasAReason() async throws {
        let relay = try await Self.relay()
        let done = try await Self.reload(relay, "--reason", "ticket 4711")
        #expect(done.status == 0, "\(done)")
        let rows = try await relay.tool("audit", "search", "--event", "daemon.reloaded", "--json")
        let row = try #require(try JSONReader.read(Array(rows.utf8)).object?["rows"]?.array?.first?.object)
        #expect(row["reason"] == "ticket 4711" && row["actor"] == "operator root")
    }

    /// The first group opens the socket to other accounts, and the last one closes it, also for a process that
    /// is restricted.
    @Test(.enabled(if: ControlPeer.canChangeAccount, "only root can act as another account"))
    func reloadOpensAndClosesTheSocket() async throws {
        let relay = try await RunningRelay.start { try $0.set("control.socket", to: "unix:control") }
        ControlPeer.open(relay)
        let socket = relay.file("control")
        #expect(TemporaryDirectory.mode(of: socket) == 0o600)
        try relay.change { try $0.set("control.auditors", to: "4009") }
        #expect(try await Self.reload(relay).status == 0)
        #expect(TemporaryDirectory.mode(of: socket) == 0o666)
        #expect(try await ControlPeer.run([["user", "list"]], at: socket, as: 4009)[0].word == "ok")
        try relay.change { try $0.set("control.auditors", to: "") }
        #expect(try await Self.reload(relay).status == 0)
        #expect(TemporaryDirectory.mode(of: socket) == 0o600)
        // A socket that somebody has removed refuses no reload.
        unlink(socket)
        relay.signal(SIGHUP)
        try await relay.logged("event=daemon.reloaded", number: 3)
    }

    // MARK: Reads

    /// Whom somebody looked up stands in the audit; the text of a search does not.
    @Test func auditTellsWhomARoleLookedUp() async throws {
        let relay = try await Self.relay()
        _ = try await relay.website("shop").curl(
            "POST", "/register", json: #"{"username":"ada","email":"ada@example.com"}"#)
        let shown = try await relay.tool("user", "show", "ada", "--website", "shop", "--json")
        let id = try #require(try JSONReader.read(Array(shown.utf8)).object?["id"]?.string)
        let commands = [
            ["user", "show", "ada", "--website=shop"], ["user", "search", "ada@exa"],
            ["user", "search", "+49 151 2345678"],
            ["user", "search", "ada"], ["user", "search", id], ["user", "list", "--website=shop", "--state=active"],
            ["audit", "search", "--user=\(id)", "--event=user."], ["audit", "search", "--user=ada", "--website=shop"],
            ["user", "show", "nobody", "--website=shop"],
            ["user", "delete", "ada", "--website=shop", "--yes", "--reason=call 17"],
        ]
        _ = try await ControlPeer.run(commands, at: relay.file("control"))
        let text = try await relay.tool("audit", "search", "--event", "control.command", "--json")
        let rows = try #require(try JSONReader.read(Array(text.utf8)).object?["rows"]?.array).compactMap(\.object)
        // The words about a user are deleted with the user, and so are those of earlier commands.
        let found = rows.map { [$0["note"]?.string ?? "", $0["website"]?.string ?? "", $0["user"]?.string ?? ""] }
        #expect(
            found == [
                ["", "shop", id], ["user search (mail address)", "", ""], ["user search (phone number)", "", ""],
                ["user search (text)", "", ""], ["user search (id)", "", ""], ["user list (state)", "shop", ""],
                ["", "shop", id], ["", "shop", id], ["user show", "", ""], ["user delete", "shop", id],
            ], "\(rows)")
        // The ids are random, and may have a few of the digits.
        #expect(["ada@exa", "+49", "151 2345678", "1512345678"].allSatisfy { !text.contains($0) })
    }

    @Test(arguments: [["audit", "search", "--limit=10001"], ["outbox", "list", "--limit=10001"]])
    func longListsAreRefused(_ words: [String]) async throws {
        let relay = try await Self.relay()
        let refused = try await ControlPeer.run([words], at: relay.file("control"))[0]
        #expect(refused.word == "usage" && refused.failure.contains("at most 10000"), "\(refused)")
        let allowed = Array(words.dropLast()) + ["--limit=10000"]
        #expect(try await ControlPeer.run([allowed], at: relay.file("control"))[0].word == "ok")
        // The tool itself may use its own memory.
        _ = try await relay.tool(words)
    }

    // MARK: Callers

    @Test(.enabled(if: ControlPeer.canChangeAccount, "only root can act as another account"))
    func strangersAreRefused() async throws {
        let relay = try await Self.relay()
        let answers = try await ControlPeer.run(
            [["user", "list"], ["reload"]], at: relay.file("control"), as: 4999)
        #expect(answers.count == 2)
        for answer in answers {
            #expect(answer.word == "failed" && answer.failure.contains("no role"), "\(answer)")
        }
        try await relay.logged("event=control.refused subject=\(ControlPeer.account) ")
        #expect(!relay.log.contains("event=daemon.reloaded"))
        let rows = try await relay.tool("audit", "search", "--event", "control.command")
        #expect(rows == "No row fits.\n")
    }

    /// The loop that accepts also handles signals and shows that the relay is alive.
    @Test(.enabled(if: ControlPeer.canChangeAccount, "only root can act as another account"))
    func accountThatConnectsWithoutEndStopsNothing() async throws {
        let relay = try await Self.relay()
        let flood = try ControlPeer.flood(relay.file("control"))
        defer { flood.signal(SIGKILL) }
        _ = try await flood.line(.output, with: "connected")
        for number in 1...3 {
            relay.signal(SIGHUP)
            try await relay.logged("event=daemon.reloaded", number: number)
        }
        flood.signal(SIGKILL)
        _ = await flood.ended()
        #expect(await relay.stop().status == 0)
    }

    /// A user namespace has such numbers, with the groups of the account that made it.
    @Test(.enabled(if: ControlPeer.canChangeAccount, "only root can act as another account"))
    func numberWithoutAnAccountHasNoRole() async throws {
        let relay = try await Self.relay()
        let group = ControlPeer.group(of: .operator)
        let answer = try await ControlPeer.run(
            [["user", "list"]], at: relay.file("control"), as: group, ControlPeer.nobody)[0]
        #expect(answer.word == "failed" && answer.failure.contains("has no number \(ControlPeer.nobody)"), "\(answer)")
        #expect(answer.output.isEmpty)
    }

    /// The account cannot read the settings or a key, and its environment names the socket.
    @Test(.enabled(if: ControlPeer.canChangeAccount, "only root can act as another account"))
    func toolOfAnotherAccountUsesTheSocket() async throws {
        let relay = try await Self.relay()
        _ = try await relay.website("shop").curl("POST", "/register", json: #"{"username":"ada"}"#)
        let tool = relay.directory("tool")
        let copied = try await Child.run("/bin/cp", [try BuiltProgram.twoefay.path, tool])
        try #require(copied.status == 0)
        func run(_ words: [String], as role: ControlRole) async throws -> Child.Ended {
            let group = "\(ControlPeer.group(of: role))"
            let account = ["--reuid", ControlPeer.account, "--regid", ControlPeer.account, "--groups", group]
            return try await Child(
                "/usr/bin/setpriv", account + [tool] + words,
                environment: ["TWOEFAY_CONTROL": "unix:" + relay.file("control"), "TWOEFAY_CONFIG": relay.settings]
            ).ended()
        }
        let ada = ["ada", "--website", "shop"]
        for options in [[], ["--json"]] {
            let own = try await relay.tool(["user", "show"] + ada + options)
            let served = try await run(["user", "show"] + ada + options, as: .auditor)
            #expect(served.status == 0 && served.output == own && served.errors.isEmpty, "\(served)")
        }
        let locked = try await run(["user", "lock"] + ada + ["--reason", "call 17"], as: .helpdesk)
        #expect(locked.status == 0, "\(locked)")
        let again = try await run(["user", "lock"] + ada + ["--json"], as: .helpdesk)
        #expect(again.status == 4 && again.errors.hasPrefix(#"{"error":{"code":"conflict""#), "\(again)")
        let refused = try await run(["reload"], as: .helpdesk)
        #expect(refused.status == 1 && refused.errors.contains("needs the role operator"), "\(refused)")
        // The audit says whom a refused command was about.
        let other = try await run(["user", "delete"] + ada, as: .helpdesk)
        #expect(other.status == 1, "\(other)")
        let refusals = try await relay.tool("audit", "search", "--user", "ada", "--website", "shop", "--json")
        let rows = try #require(try JSONReader.read(Array(refusals.utf8)).object?["rows"]?.array).compactMap(\.object)
        let refusal = rows.last { $0["outcome"] == "refused" }
        #expect(refusal?["event"] == "control.command" && refusal?["note"] == "user delete", "\(refusals)")
        // Without a terminal, nobody can confirm.
        let asked = try await run(["user", "delete"] + ada, as: .operator)
        #expect(asked.status == 2 && asked.errors.contains("--yes"), "\(asked)")
        let deleted = try await run(["user", "delete"] + ada + ["--yes"], as: .operator)
        #expect(deleted.status == 0, "\(deleted)")
        await relay.stop()
        let absent = try await run(["user", "list"], as: .helpdesk)
        #expect(absent.status == 5 && absent.errors.contains("cannot be reached"), "\(absent)")
    }

    @Test func destructionIsAskedFor() async throws {
        let relay = try await Self.relay()
        _ = try await relay.website("shop").curl("POST", "/register", json: #"{"username":"ada"}"#)
        let words = ["user", "delete", "ada", "--website=shop"]
        let answers = try await ControlPeer.run([words, words + ["--yes"]], at: relay.file("control"))
        #expect(answers[0].word == "question" && answers[0].question?.contains("deleted for good") == true)
        #expect(answers[1].word == "ok", "\(answers[1])")
    }

    @Test(arguments: ["{}", "[]", "reload", #"{"arguments":[1]}"#, #"{"arguments":["status"],"actor":"x"}"#])
    func otherRequestsAreRefused(_ request: String) async throws {
        let relay = try await Self.relay()
        let answer = try await ControlPeer.send([request + "\n"], to: relay.file("control"))[0]
        #expect(answer.contains(#""code":"usage""#), "\(answer)")
    }

    /// Commands that need files of the installation are the tool's own, and so is help.
    @Test(arguments: [
        ["website", "add", "shop"], ["backup", "/tmp/x"], ["rekey"], ["audit", "export", "--out=/tmp/x"], ["demo"],
        ["user", "show", "--help"], [], ["user", "show", "ada", "--config=/etc/passwd"],
    ])
    func otherCommandsAreRefused(_ words: [String]) async throws {
        let relay = try await Self.relay()
        let answer = try await ControlPeer.run([words], at: relay.file("control"))[0]
        #expect(answer.word == "usage" && answer.output.isEmpty, "\(answer)")
    }

    @Test func slowAndLongRequestsEndTheConnectionAlone() async throws {
        let relay = try await Self.relay()
        // The second one never ends, and the relay does not wait for it.
        let requests = [String(repeating: "x", count: 20_000), #"{"arguments":["#]
        #expect(try await ControlPeer.send(requests, to: relay.file("control")) == ["", ""])
        #expect(try await Self.reload(relay).status == 0)
    }

    @Test func eachAccountHasALimit() async throws {
        let relay = try await Self.relay { settings in
            try settings.set("control.requests", to: "6")
            try settings.set("control.changes", to: "2")
        }
        let lock = ["user", "lock", "nobody", "--website=shop"]
        let list = ["user", "list"]
        let answers = try await ControlPeer.run(
            [lock, lock, lock, list, list, list, list, list], at: relay.file("control"))
        // A refused request does not count.
        let words = ["not_found", "not_found", "unavailable", "ok", "ok", "ok", "ok", "unavailable"]
        #expect(answers.map(\.word) == words, "\(answers)")
        let more = try #require(answers.last)
        #expect(more.word == "unavailable" && more.failure.contains("too many requests"), "\(more)")
        try await relay.logged("event=control.limited subject=\(getuid()) ")
    }

    // MARK: The socket

    @Test func socketIsForTheRelaysAccountAloneWithoutGroups() async throws {
        let relay = try await RunningRelay.start { try $0.set("control.socket", to: "unix:control") }
        #expect(TemporaryDirectory.mode(of: relay.file("control")) == 0o600)
        let other = try await Child.run(
            try BuiltProgram.twoefayd.path, ["--config", relay.settings])
        #expect(other.status == 4 && other.errors.contains("control.socket: cannot listen"), "\(other)")
        // A dead relay leaves its socket, which the next one replaces.
        await relay.kill()
        #expect(access(relay.file("control"), F_OK) == 0)
        try await relay.restart()
        #expect(try await Self.reload(relay).status == 0)
        await relay.stop()
        #expect(access(relay.file("control"), F_OK) != 0)
    }

    @Test func socketNeedsADirectoryOfItsOwn() async throws {
        let relay = try await Self.relay()
        await relay.stop()
        let place = relay.directory("open")
        try #require(mkdir(place, 0o777) == 0 && chmod(place, 0o777) == 0)
        try relay.change { try $0.set("control.socket", to: "unix:\(place)/control") }
        for options in [[], ["--check"]] {
            let ended = try await Child.run(
                try BuiltProgram.twoefayd.path, ["--config", relay.settings] + options)
            #expect(ended.status == 1 && ended.errors.contains("can be written to by others"), "\(ended)")
        }
    }

    @Test func unknownGroupIsRefused() async throws {
        let relay = try await Self.relay()
        await relay.stop()
        try relay.change { try $0.set("control.helpdesk", to: "no-such-group") }
        for options in [[], ["--check"]] {
            let ended = try await Child.run(
                try BuiltProgram.twoefayd.path, ["--config", relay.settings] + options)
            #expect(
                ended.status == 1 && ended.errors.contains("control.helpdesk: there is no group no-such-group"),
                "\(ended)")
        }
    }
}
