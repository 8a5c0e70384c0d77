import Glibc
import JSON
import Storage
import TestSupport
import Testing

@Suite("twoefay audit", .timeLimit(.minutes(15)), .mayBlock) struct AuditCommandTests {
    private func rows(_ fixture: Fixture, _ options: String...) async throws -> [JSONObject] {
        let ended = try await fixture.tool(["audit", "search", "--json"] + options)
        try #require(ended.status == 0, "\(ended.errors)")
        let rows = try JSONReader.read(Array(ended.output.utf8)).object?["rows"]?.array ?? []
        return rows.compactMap(\.object)
    }

    @Test func rowsNameTheOperatorAndTheReason() async throws {
        let fixture = try await Fixture(.file)
        _ = try await fixture.registered("ada")
        _ = try await fixture.json("user", "lock", "ada", "--website", "shop", "--reason", "ticket 4711")
        let locked = try await rows(fixture, "--website", "shop", "--user", "ada", "--event", "user.locked")
        #expect(locked.count == 1)
        #expect(locked.first?["actor"]?.string?.hasPrefix("operator ") == true)
        #expect(locked.first?["reason"] == "ticket 4711")
        // The relay registered the user for the website.
        let registered = try await rows(fixture, "--event", "user.registered")
        #expect(registered.first?["actor"] == "website shop")
        #expect(registered.first?["request"]?.string?.isEmpty == false)
        #expect(try await rows(fixture, "--actor", "operator", "--event", "user.").count == 1)
        // The log has the ids of requests and logins.
        let request = try #require(registered.first?["request"]?.string)
        let ofRequest = try await rows(fixture, "--request", request)
        #expect(!ofRequest.isEmpty && ofRequest.allSatisfy { $0["request"] == .string(request) }, "\(ofRequest)")
        _ = try await fixture.json("user", "unlock", "ada", "--website", "shop")
        let login = try await fixture.login("ada")
        let ofLogin = try await rows(fixture, "--challenge", login)
        #expect(!ofLogin.isEmpty && ofLogin.allSatisfy { $0["challenge"] == .string(login) }, "\(ofLogin)")
        try await fixture.refused(["audit", "search", "--challenge", "x"], 2, "--challenge must be")
        #expect(try await rows(fixture, "--until", "2020-01-01").isEmpty)
    }

    @Test func editedWebsiteHasItsFormerValues() async throws {
        let fixture = try await Fixture(.file)
        _ = try await fixture.json("website", "edit", "shop", "--lifetime", "120", "--display-name", "The Shop")
        let changes = try await rows(fixture, "--event", "website.edited").first?["changes"]?.object
        #expect(changes?["display_name"]?.object?["after"] == "The Shop")
        #expect(changes?["policy.lifetime"]?.object?["after"] != nil)
        #expect(changes?.count == 2)
    }

    @Test func changedRowIsNamed() async throws {
        let fixture = try await Fixture(.file)
        _ = try await fixture.registered("ada")
        let right = try await fixture.json("audit", "verify")
        #expect(right["findings"]?.array == [])
        #expect(right["heads"]?.isNull == true)
        try fixture.relay.forge("UPDATE audit SET event = 'user.enabled' WHERE event = 'user.registered'")
        let ended = try await fixture.tool(["audit", "verify", "--json"])
        let found = try JSONReader.read(Array(ended.output.utf8)).object?["findings"]?.array
        #expect(ended.status == 1)
        #expect(found?.map { $0.object?["kind"] } == ["changed"])
        try await fixture.refused(["audit", "verify", "--heads", "/nonexistent"], 1, "--heads: /nonexistent")
    }

    @Test func exportIsInTheAudit() async throws {
        let fixture = try await Fixture(.file)
        _ = try await fixture.registered("ada")
        let directory = try TemporaryDirectory()
        let exported = try await fixture.json("audit", "export", "--out", directory("rows.jsonl"))
        let lines = try TextFile.bytes(directory("rows.jsonl")).split(separator: UInt8(ascii: "\n"))
        #expect(exported["rows"]?.integer == Int64(lines.count))
        #expect(try lines.allSatisfy { try JSONReader.read(Array($0)).object?["event"] != nil })
        #expect(try await rows(fixture, "--event", "audit.exported").count == 1)
        try await fixture.refused(["audit", "export", "--out", directory("rows.jsonl")], 4, "File exists")
        let tail = try await fixture.json("audit", "tail", "--count", "1")
        #expect(tail["rows"]?.array?.first?.object?["event"] == "audit.exported")
    }

    /// Lines that a crash has cut are counted. A file without heads of this store is not right.
    @Test func headsOfDamagedFilesAreRead() async throws {
        let fixture = try await Fixture(.file) { try $0.set("audit.heads", to: "heads.jsonl") }
        _ = try await fixture.registered("ada")
        await fixture.relay.stop()
        let path = fixture.relay.file("heads.jsonl")
        let whole = try TextFile.read(path)
        let heads = whole.split(separator: "\n").count
        // The power failed while a line was written.
        try TextFile.write("{\"writer\":\"00\n\0\0\0\n{}\n" + whole, to: path)
        let verified = try await fixture.json("audit", "verify", "--heads", path)
        #expect(verified["findings"]?.array == [] && verified["heads"]?.integer == Int64(heads))
        #expect(verified["unread_lines"]?.integer == 3)
        let former = fixture.relay.file("former.jsonl")
        try TextFile.write("", to: former)
        let both = try await fixture.json("audit", "verify", "--heads", former, path)
        #expect(both["findings"]?.array == [] && both["heads_chains"] == verified["heads_chains"])
        let ended = try await fixture.tool(["audit", "verify", "--heads", former, "--json"])
        #expect(ended.status == 1)
        let report = try #require(try JSONReader.read(Array(ended.output.utf8)).object)
        #expect(report["heads_chains"]?.integer == 0)
        #expect(report["findings"]?.array == [])
        try await fixture.refused(["audit", "verify", "--heads", path + ".none"], 1, "No such file")
    }

    /// The whole way of heads through syslog: the relay sends them under its hardening, the service puts
    /// its own words before them, and the check finds a deleted end.
    @Test func headsGoThroughSyslog() async throws {
        let directory = try TemporaryDirectory()
        let service = try NotifySocket(path: directory("log"))
        let fixture = try await Fixture(.file) { try $0.set("audit.heads", to: "syslog:local5@\(service.address)") }
        _ = try await fixture.registered("ada")
        await fixture.relay.stop()
        try service.mark("end")
        var messages: [String] = []
        while let message = try service.next().first, message != "end" { messages.append(message) }
        // The tool that added the website has sent its own head.
        #expect(messages.allSatisfy { $0.wholeMatch(of: /<173>twoefay-audit\[[0-9]+\]: \{.*\}/) != nil }, "\(messages)")
        #expect(messages.contains { $0.hasPrefix("<173>twoefay-audit[\(fixture.relay.pid)]: {") }, "\(messages)")
        let path = fixture.relay.file("auth.log")
        let lines = messages.map { "Nov 27 14:00:00 host \($0.dropFirst(5))\n" }
        try TextFile.write("Nov 27 14:00:00 host sshd[7]: a line of another program\n" + lines.joined(), to: path)
        let verified = try await fixture.json("audit", "verify", "--heads", path)
        #expect(verified["findings"]?.array == [] && verified["heads"]?.integer == Int64(messages.count))
        #expect(verified["unread_lines"]?.integer == 1 && verified["links_beyond_heads"]?.integer == 0)
        try fixture.relay.forge("DELETE FROM audit WHERE event = 'daemon.stopped'")
        try fixture.relay.forge(
            "DELETE FROM audit_link WHERE sequence = (SELECT max(l.sequence) FROM (SELECT sequence FROM audit_link) l)")
        let ended = try await fixture.tool(["audit", "verify", "--heads", path, "--json"])
        let found = try JSONReader.read(Array(ended.output.utf8)).object?["findings"]?.array
        #expect(ended.status == 1 && found?.map { $0.object?["kind"] } == ["truncated"], "\(ended.output)")
    }

    /// A command that runs without a relay writes its own head.
    @Test(arguments: [StoreKind.file, .mariadb]) func headOfACommandIsInTheFileAtOnce(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind) { try $0.set("audit.heads", to: "heads.jsonl") }
        _ = try await fixture.registered("ada")
        await fixture.relay.stop()
        let path = fixture.relay.file("heads.jsonl")
        let before = try TextFile.read(path).split(separator: "\n").count
        _ = try await fixture.json("user", "lock", "ada", "--website", "shop")
        #expect(try TextFile.read(path).split(separator: "\n").count == before + 1)
        let verified = try await fixture.json("audit", "verify", "--heads", path)
        #expect(verified["findings"]?.array == [] && verified["links_beyond_heads"]?.integer == 0)
        // A command that only reads has no head.
        _ = try await rows(fixture)
        #expect(try TextFile.read(path).split(separator: "\n").count == before + 1)
    }

    @Test func initIsTheFirstRow() async throws {
        let installed = try await Installed("--reason", "ticket 4711")
        let ended = try await Child.run(
            try BuiltProgram.twoefay.path, ["--config", installed.settings, "--json", "audit", "search"])
        let rows = try ended.json["rows"]?.array?.compactMap(\.object) ?? []
        #expect(rows.map { $0["event"] } == ["installation.created"])
        #expect(rows.first?["actor"]?.string?.hasPrefix("operator ") == true)
        #expect(rows.first?["reason"] == "ticket 4711")
        #expect(rows.first?["note"]?.string?.contains("authorities of the server, the websites and the phones") == true)
        let verified = try await Child.run(
            try BuiltProgram.twoefay.path, ["--config", installed.settings, "--json", "audit", "verify"])
        #expect(verified.status == 0, "\(verified.errors)")
        #expect(try verified.json["findings"]?.array == [])
    }

    /// An export that is cut short is in the audit, too, with its conditions.
    @Test func exportIsInTheAuditBeforeItsFirstRow() async throws {
        let fixture = try await Fixture(.file)
        await fixture.relay.stop()
        let path = fixture.relay.directory("rows.jsonl")
        _ = try await fixture.json("audit", "export", "--out", path, "--event", "audit.")
        let begun = try await rows(fixture, "--event", "audit.export_begun")
        #expect(begun.count == 1)
        #expect(begun.first?["note"]?.string == "event audit. to \(path)")
        #expect(try text(path).contains("audit.export_begun"))
    }

    /// The keys of the server's authority need no store, but a change by them is in the audit.
    @Test func renewalOfTheServerIsInTheAudit() async throws {
        let fixture = try await Fixture(.file)
        let ended = try await fixture.tool(["server", "renew", "--reason", "ticket 4711"])
        #expect(ended.status == 0 && !ended.output.contains("has no row"), "\(ended.errors)")
        let found = try await rows(fixture, "--event", "server.renewed")
        #expect(found.count == 1)
        #expect(found.first?["reason"] == "ticket 4711")
    }

    // MARK: Events of programs

    @Test(arguments: [StoreKind.file, .mariadb]) func lifeOfARelayIsInTheAudit(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let relay = fixture.relay
        relay.signal(SIGHUP)
        try await relay.logged("event=daemon.reloaded")
        try relay.change { try $0.set("log.level", to: "debug") }
        let authority = try TextFile.read(relay.file("ca.pem"))
        try TextFile.write("no certificate", to: relay.file("ca.pem"))
        relay.signal(SIGHUP)
        try await relay.logged("event=daemon.reload ")
        try TextFile.write(authority, to: relay.file("ca.pem"))
        await relay.stop()
        let found = try await rows(fixture, "--event", "daemon.")
        #expect(found.map { $0["event"] } == ["daemon.started", "daemon.reloaded", "daemon.reload", "daemon.stopped"])
        #expect(found.map { $0["outcome"] ?? .null } == [.null, .null, "refused", .null])
        #expect(found.allSatisfy { $0["actor"]?.string?.hasPrefix("relay ") == true })
        #expect(found.count == 4 && found[2]["note"]?.string?.contains("ca.pem") == true)
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func commandsOfAnOperatorAreInTheAudit(_ kind: StoreKind) async throws
    {
        let fixture = try await Fixture(kind)
        let relay = fixture.relay
        let steps: [(command: [String], event: String)] = [
            (["migrate"], "schema.migrated"), (["backup", relay.directory("copy")], "backup.begun"),
            (["audit", "export", "--out", relay.directory("rows.jsonl")], "audit.exported"),
        ]
        for (command, event) in steps {
            let ended = try await fixture.tool(command + ["--reason", "ticket 4711", "--json"])
            #expect(ended.status == 0, "\(event): \(ended.errors)")
            let found = try await rows(fixture, "--event", event)
            #expect(found.count == 1, "\(event)")
            #expect(found.first?["actor"]?.string?.hasPrefix("operator ") == true)
            #expect(found.first?["reason"] == "ticket 4711")
            #expect(found.first?["note"]?.string?.isEmpty == false)
        }
        // A backup that fails has an end, too.
        let missing = try await fixture.tool(["backup", relay.directory("nowhere/copy")])
        #expect(missing.status == 1, "\(missing.errors)")
        let backups = try await rows(fixture, "--event", "backup.")
        let events = backups.map { $0["event"]?.string }
        #expect(events == ["backup.begun", "backup.ended", "backup.begun", "backup.ended"], "\(backups)")
        #expect(backups.map { $0["outcome"]?.string } == [nil, "ok", nil, "failed"], "\(backups)")
        #expect(backups[1]["note"]?.string?.contains("copy: ") == true && backups[1]["reason"] == "ticket 4711")
        #expect(backups[3]["note"]?.string?.contains("nowhere/copy: ") == true, "\(backups)")
        #expect(try await fixture.json("audit", "verify")["findings"]?.array == [])
    }

    @Test func stepsOfRekeyAreInTheAudit() async throws {
        let installed = try await Installed()
        let steps: [([String], String)] = [
            ([], "rekey.added"), (["--use"], "rekey.used"), (["--finish"], "rekey.finished"),
        ]
        for (options, event) in steps {
            let ended = try await Child.run(
                try BuiltProgram.twoefay.path,
                ["--config", installed.settings, "rekey", "--reason", "ticket 4711"] + options)
            try #require(ended.status == 0, "\(ended.errors)")
            let found =
                try await installed.tool("audit", "search", "--event", event)["rows"]?.array?.compactMap(\.object) ?? []
            #expect(found.map { $0["reason"] } == ["ticket 4711"], "\(event)")
            #expect(found.first?["note"]?.string?.hasPrefix("key ") == true)
        }
        #expect(try await installed.tool("audit", "verify")["findings"]?.array == [])
    }

    @Test func droppedFactorNamesTheOperator() async throws {
        let fixture = try await Fixture(.file)
        let seed = #"{"secret":"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"}"#
        for user in ["ada", "bob"] {
            _ = try await fixture.registered(user)
            #expect(try await fixture.shop.curl("POST", "/user/\(user)/hotp", json: seed).status == 201)
        }
        #expect(try await fixture.shop.curl("DELETE", "/user/ada/hotp").status == 204)
        _ = try await fixture.json("user", "remove-factor", "bob", "hotp", "--website", "shop", "--last", "--yes")
        let actors = try await rows(fixture, "--event", "factor.dropped").map { $0["actor"]?.string ?? "" }
        #expect(actors.count == 2 && actors[0] == "website shop" && actors[1].hasPrefix("operator "), "\(actors)")
    }

    @Test func longReasonIsRefused() async throws {
        let fixture = try await Fixture(.file)
        _ = try await fixture.registered("ada")
        for reason in ["", String(repeating: "x", count: 257), "two\nlines"] {
            try await fixture.refused(
                ["user", "lock", "ada", "--website", "shop", "--reason", reason], 2, "--reason ")
        }
        #expect(try await rows(fixture, "--event", "user.locked").isEmpty)
    }

    /// More rows than one page has, and all of them once.
    @Test(arguments: [StoreKind.file, .mariadb]) func searchOfAUserGoesThroughAllPages(_ kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        _ = try await fixture.registered("ada")
        let count = AuditTrail.pageSize + 405
        let operation = kind == .mariadb ? "unhex(lpad(i, 32, '0'))" : "CAST(printf('%016d', i) AS BLOB)"
        // Rows with one and the same time are told apart by their numbers. MariaDB ends a recursion after
        // a thousand rows, so the numbers are pairs.
        try fixture.relay.forge(
            """
            INSERT INTO audit (operation, at, event, user_id, website_id)
            WITH RECURSIVE m(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM m WHERE i < 49),
            n(i) AS (SELECT a.i * 50 + b.i + 1 FROM m a JOIN m b ON a.i * 50 + b.i < \(count))
            SELECT \(operation), CASE WHEN i < 700 THEN '2040-01-01 00:00:00.000' ELSE '2040-01-02 00:00:00.000' END,
            'forged', (SELECT id FROM user WHERE username = 'ada'), (SELECT id FROM website WHERE name = 'shop') FROM n
            """)
        let user = ["--website", "shop", "--user", "ada", "--event", "forged", "--limit", "100000"]
        func found(_ more: String...) async throws -> [Int64] {
            let ended = try await fixture.tool(["audit", "search", "--json"] + user + more)
            let rows = try JSONReader.read(Array(ended.output.utf8)).object?["rows"]?.array ?? []
            return rows.compactMap { $0.object?["id"]?.integer }
        }
        let all = try await found()
        #expect(all.count == count && Set(all).count == count)
        #expect(try await found("--since", "2040-01-02").count == count - 699)
        #expect(try await found("--until", "2040-01-02").count == 699)
    }
}
