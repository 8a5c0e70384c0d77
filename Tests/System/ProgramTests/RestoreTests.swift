import Glibc
import JSON
import Storage
import Synchronization
import TestSupport
import Testing

/// `twoefay restore`: a rehearsal with a relay under load, and what can go wrong.
@Suite("twoefay restore", .timeLimit(.minutes(15)), .mayBlock) struct RestoreTests {
    private static let kinds: [StoreKind] = [.file, .mariadb]
    /// The codes of the seed, by RFC 4226.
    private static let seed = #"{"secret":"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"}"#
    private static let codes = ["755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583"]

    /// An installation whose store was lost after a backup, an export of the audit, and what was known
    /// before.
    private struct Lost {
        let fixture: Fixture
        let copy: String
        let export: String
        let phone: Fixture.Phone
        let stolen: Fixture.Phone
        /// The challenge that was open at the time of the copy.
        let open: String
        /// The challenge that was asked under an idempotency key before the copy.
        let first: String
    }

    private final class Flag: Sendable {
        private let state = Mutex(false)
        var isSet: Bool { state.withLock { $0 } }
        func set() { state.withLock { $0 = true } }
    }

    private func asked(_ fixture: Fixture, _ username: String, key: String) async throws -> String {
        let answer = try await fixture.shop.curl(
            "POST", "/login", json: #"{"username":"\#(username)"}"#, fields: ["idempotency-key": "\"\(key)\""])
        return try #require(answer["challenge"]?.string, "\(answer)")
    }

    private func checked(_ code: String, _ fixture: Fixture) async throws -> CurlCaller.Answer {
        try await fixture.shop.curl("POST", "/verify-otp", json: #"{"username":"dora","otp":"\#(code)"}"#)
    }

    /// Runs a relay under load, and takes the copy and the export meanwhile. The relay has ended
    /// afterwards.
    private func lose(_ kind: StoreKind) async throws -> Lost {
        let fixture = try await Fixture(kind)
        let phone = try await fixture.bind(try await fixture.registered("anna"))
        let stolen = try await fixture.bind(try await fixture.registered("bea"))
        for name in ["carl", "dora", "emil"] { _ = try await fixture.registered(name) }
        #expect(try await fixture.shop.curl("POST", "/user/dora/hotp", json: Self.seed).status == 201)
        #expect(try await checked(Self.codes[0], fixture)["valid"] == true)
        // Somebody uses the code after the copy was made, or it goes to a stranger and is revoked.
        _ = try await fixture.json(
            "website", "edit", "shop", "--factors", "push,totp,hotp,sms,mail,recovery,operator")
        _ = try await fixture.json("user", "temporary-code", "dora", "--website", "shop", "--may-enrol")
        let (copy, export) = (fixture.relay.directory("copy"), fixture.relay.directory("export"))
        let (open, first) = (try await fixture.login("anna"), try await asked(fixture, "bea", key: "before"))
        let isOver = Flag()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                var count = 0
                while !isOver.isSet {
                    _ = try await fixture.registered("user\(count)")
                    _ = try await fixture.login("user\(count)")
                    count += 1
                }
            }
            defer { isOver.set() }
            _ = try await fixture.json("backup", copy)
            // Changes that the copy does not know.
            #expect(try await checked(Self.codes[1], fixture)["valid"] == true)
            _ = try await fixture.json("device", "revoke", stolen.device, "--yes")
            _ = try await fixture.json("user", "lock", "carl", "--website", "shop")
            #expect(try await fixture.shop.curl("DELETE", "/user/emil").status == 204)
            _ = try await fixture.registered("late")
            isOver.set()
            try await group.waitForAll()
        }
        _ = try await fixture.json("audit", "export", "--out", export)
        return Lost(
            fixture: fixture, copy: copy, export: export, phone: phone, stolen: stolen, open: open, first: first)
    }

    /// Names an empty database in the settings, as the page says. A SQLite store stays where it is.
    private func prepare(_ relay: RunningRelay) async throws -> StorageURL {
        guard case .mariadb = relay.storage else { return relay.storage }
        let url = try await blocking {
            let server = try MariaDBServer.shared()
            return server.url(try server.freshDatabase())
        }
        try relay.change { settings in try settings.set("storage", to: url) }
        return try StorageURL(url)
    }

    private func count(_ sql: String, _ store: StorageURL) async throws -> Int64 {
        try await blocking { try RunningRelay.count(sql, at: store) }
    }

    @Test(arguments: kinds, [true, false]) func rehearsal(kind: StoreKind, hasExport: Bool) async throws {
        let lost = try await lose(kind)
        let (fixture, relay) = (lost.fixture, lost.fixture.relay)
        await relay.stop()
        let store = try await prepare(relay)
        let arguments = ["restore", lost.copy, "--yes", "--json"] + (hasExport ? ["--since", lost.export] : [])
        let ended = try await fixture.tool(arguments)
        try #require(ended.status == 0, "\(ended.errors)")
        let restored = try ended.json
        try expectReport(restored, lost, hasExport: hasExport)

        for command in [["rows", "verify"], ["audit", "verify"]] {
            let verified = try await fixture.tool(command)
            #expect(verified.status == 0, "\(verified.output)\(verified.errors)")
        }
        #expect(try await count("SELECT count(*) FROM audit WHERE event = 'store.restored'", store) == 1)
        #expect(try await count("SELECT count(*) FROM audit WHERE event = 'restore.logins'", store) == 1)
        #expect(try await count("SELECT count(*) FROM temporary_code", store) == 0)
        let voided = "SELECT count(*) FROM audit WHERE event = 'temporary.revoked' AND outcome = 'restore'"
        #expect(try await count(voided, store) == 1)
        try await relay.restart()
        try await expectOldThingsToBeRefused(lost)
        try await expectCodesToBeRefused(fixture)
        if hasExport {
            #expect(try await !lost.stolen.isKnown())
            #expect(try await fixture.shop.curl("GET", "/user/emil").status == 404)
            #expect(try await fixture.shop.curl("GET", "/user/carl")["state"] == "locked")
        } else {
            try await expectDoubt(about: lost.stolen, fixture)
        }
        // A new login works.
        #expect(try await lost.phone.isKnown())
        #expect(try await fixture.result(try await fixture.login("anna"))["login"] == "wait")
    }

    private func expectReport(_ restored: JSONObject, _ lost: Lost, hasExport: Bool) throws {
        let voided = try #require(restored["voided"]?.object)
        #expect(try #require(voided["logins"]?.integer) >= 2, "\(voided)")
        #expect(voided["hotp"] == 1)
        guard hasExport else {
            #expect(voided["phones"] == 2 && restored["replayed"] == [:])
            return
        }
        #expect(voided["phones"] == nil)
        let replayed = try #require(restored["replayed"]?.object)
        #expect(replayed["phones_revoked"] == 1 && replayed["users_locked"] == 1 && replayed["users_deleted"] == 1)
        // The user who was registered after the copy, and perhaps others.
        #expect(try #require(restored["not_replayed"]?.object?["user.registered"]?.integer) >= 1)
    }

    /// The open login is over, and the key of the repeated request belongs to another time.
    private func expectOldThingsToBeRefused(_ lost: Lost) async throws {
        let result = try await lost.fixture.result(lost.open)
        #expect(result["login"] == "failure" && result["reason"] == "cancelled", "\(result)")
        let isLocked = try await lost.fixture.shop.curl("GET", "/user/bea")["state"] == "locked"
        #expect(!isLocked)
        #expect(try await asked(lost.fixture, "bea", key: "before") != lost.first)
    }

    /// Neither the used code nor a later one counts before the token was resynchronised.
    private func expectCodesToBeRefused(_ fixture: Fixture) async throws {
        for code in [Self.codes[1], Self.codes[2]] {
            let answer = try await checked(code, fixture)
            #expect(answer.status == 409, "\(answer)")
        }
        let body = #"{"otps":["\#(Self.codes[4])","\#(Self.codes[5])"]}"#
        let synced = try await fixture.shop.curl("POST", "/user/dora/hotp/resync", json: body)
        #expect(synced["resynced"] == true, "\(synced)")
        #expect(try await checked(Self.codes[6], fixture)["valid"] == true)
    }

    /// The stolen phone is known again, and marked until somebody lifts the mark.
    private func expectDoubt(about phone: Fixture.Phone, _ fixture: Fixture) async throws {
        #expect(try await phone.isKnown())
        func device() async throws -> JSONObject {
            let user = try await fixture.shop.curl("GET", "/user/bea")
            return try #require(user["devices"]?.array?.first?.object, "\(user)")
        }
        #expect(try await device()["verify_since"]?.string != nil)
        let shown = try await fixture.json("device", "show", phone.device)
        #expect(shown["verify_since"]?.string != nil)
        for command in [["user", "show"], ["device", "list"]] {
            let seen = try await fixture.tool(command + ["bea", "--website", "shop"])
            #expect(seen.output.contains("active, verify"), "\(seen)")
            #expect(seen.output.contains("twoefay device verify \(phone.device)"), "\(seen)")
        }
        let verified = try await fixture.shop.curl(
            "PATCH", "/user/bea/devices/\(phone.device)", json: #"{"verified":true}"#)
        #expect(verified.status == 200, "\(verified)")
        #expect(try await device()["verify_since"] == nil)
        try await fixture.refused(["device", "verify", phone.device], 4, "is in no doubt")
    }

    // MARK: Refusals

    @Test(arguments: kinds) func runningRelayKeepsItsStore(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let copy = fixture.relay.directory("copy")
        _ = try await fixture.json("backup", copy)
        let problem = kind == .file ? "is in use by another relay" : "has tables of a store"
        try await fixture.refused(["restore", copy, "--yes"], 4, problem)
        _ = try await fixture.registered("anna")
    }

    /// A relay that lives while the tables of its database are replaced is found by its heartbeat.
    @Test func relayThatStillWritesIsFound() async throws {
        let fixture = try await Fixture(.mariadb)
        let (relay, copy) = (fixture.relay, fixture.relay.directory("copy"))
        _ = try await fixture.json("backup", copy)
        guard case .mariadb(let server) = relay.storage else {
            Issue.record("\(relay.storage)")
            return
        }
        let socket = try await blocking { try MariaDBServer.shared().socket }
        let drop = "DROP TABLE " + StoreTables.names.map { "`\($0)`" }.joined(separator: ", ")
        let emptied = try await Child.run(
            "mariadb", ["--no-defaults", "--user=root", "--socket=\(socket)", "-e", drop, server.database])
        try #require(emptied.status == 0, "\(emptied.errors)")
        try await fixture.refused(["restore", copy, "--yes"], 4, "is running on")
        await relay.stop()
        // Until the restore is complete, no relay starts.
        let refused = try await Child.run(try BuiltProgram.twoefayd.path, ["--config", relay.settings])
        #expect(refused.status != 0 && refused.errors.contains("not completely restored"), "\(refused.errors)")
        _ = try await fixture.json("restore", copy, "--yes")
        try await relay.restart()
    }

    @Test func filesThatAreNoCopiesAreRefused() async throws {
        let fixture = try await Fixture(.file)
        await fixture.relay.stop()
        let (copy, text) = (fixture.relay.directory("copy"), fixture.relay.directory("text"))
        _ = try await fixture.json("backup", copy)
        try TextFile.write("SELECT 1;\n", to: text)
        try await fixture.refused(["restore", text, "--yes"], 2, "is not a SQLite database")
        try await fixture.refused(["restore", fixture.relay.directory("none"), "--yes"], 3, "No such file")
        try await fixture.refused(["restore", copy], 2, "restore needs a confirmation")
        let export = fixture.relay.directory("export")
        _ = try await fixture.json("audit", "export", "--out", export)
        try TextFile.write(try TextFile.read(export) + #"{"event":"user.locked"}"# + "\n", to: export)
        let lines = try TextFile.read(export).split(separator: "\n").count
        try await fixture.refused(["restore", copy, "--yes", "--since", export], 1, "\(export):\(lines): this line")
        let names = TemporaryDirectory.names(in: fixture.relay.installation)
        #expect(!names.contains { $0.contains("restor") }, "\(names)")
    }

    // MARK: Interrupted runs

    /// Kills the command at several moments. The next run ends with the result of an undisturbed one.
    @Test func killedRestoreOfAFileIsRepeated() async throws {
        let fixture = try await Fixture(.file)
        _ = try await fixture.bind(try await fixture.registered("anna"))
        _ = try await fixture.login("anna")
        let copy = fixture.relay.directory("copy")
        _ = try await fixture.json("backup", copy)
        await fixture.relay.stop()
        let expected = try await fixture.json("restore", copy, "--yes")["voided"]
        for pause in ["0.02", "0.05", "0.1", "0.2", "0.4"] {
            _ = try await Child.run(
                "timeout",
                [
                    "--signal=KILL", pause, try BuiltProgram.twoefay.path, "--config", fixture.relay.settings,
                    "restore",
                    copy, "--yes",
                ])
        }
        #expect(try await fixture.json("restore", copy, "--yes")["voided"] == expected)
        let restored = "SELECT count(*) FROM audit WHERE event = 'store.restored'"
        #expect(try await count(restored, fixture.relay.storage) == 1)
        try await fixture.relay.restart()
    }

    /// The state that a killed load leaves, and that of a run that was killed before its end.
    @Test func killedRestoreIntoADatabaseIsContinued() async throws {
        let fixture = try await Fixture(.mariadb)
        _ = try await fixture.bind(try await fixture.registered("anna"))
        _ = try await fixture.login("anna")
        let copy = fixture.relay.directory("copy")
        _ = try await fixture.json("backup", copy)
        await fixture.relay.stop()
        let store = try await prepare(fixture.relay)
        guard case .mariadb(let server) = store else {
            Issue.record("\(store)")
            return
        }
        let half = "CREATE TABLE restoring_copy (id int PRIMARY KEY); CREATE TABLE website (id int PRIMARY KEY)"
        let made = try await Child.run(
            "mariadb",
            [
                "--no-defaults", "--user=root", "--socket=\(try await blocking { try MariaDBServer.shared().socket })",
                "-e", half, server.database,
            ])
        try #require(made.status == 0, "\(made.errors)")
        let first = try await fixture.json("restore", copy, "--yes")
        #expect(first["voided"]?.object?["phones"] == 1)
        // A complete restore is not continued.
        try await fixture.refused(["restore", copy, "--yes"], 4, "has tables of a store")
        try await blocking {
            try RunningRelay.execute(
                "UPDATE installation_epoch SET state = 'restoring'", at: store, settings: fixture.relay.settings)
        }
        let again = try await fixture.json("restore", copy, "--yes")
        #expect(again["voided"] == first["voided"] && again["epoch"] == first["epoch"])
        #expect(try await count("SELECT count(*) FROM audit WHERE event LIKE 'restore.%'", store) == 11)
        #expect(try await count("SELECT count(*) FROM audit WHERE event = 'store.restored'", store) == 1)
        try await fixture.relay.restart()
    }
}
