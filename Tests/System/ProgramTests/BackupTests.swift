import CLinux
import Glibc
import JSON
import Storage
import Synchronization
import TestSupport
import Testing

/// `twoefay backup` beside a running relay, and the way back by hand that the page describes.
@Suite("twoefay backup", .timeLimit(.minutes(15)), .mayBlock) struct BackupTests {
    private static let kinds: [StoreKind] = [.file, .mariadb]

    /// Registers users until the flag is set. Returns how many.
    private func register(_ fixture: Fixture, until isOver: Flag) async throws -> Int {
        var count = 0
        while !isOver.isSet {
            _ = try await fixture.registered("user\(count)")
            count += 1
        }
        return count
    }

    private final class Flag: Sendable {
        private let state = Mutex(false)
        var isSet: Bool { state.withLock { $0 } }
        func set() { state.withLock { $0 = true } }
    }

    private func mode(_ path: String) throws -> mode_t {
        var state = stat()
        try #require(stat(path, &state) == 0)
        return state.st_mode & 0o7777
    }

    @Test(arguments: kinds) func backupBesideARunningRelayCanBePutBack(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let relay = fixture.relay
        let phone = try await fixture.bind(try await fixture.registered("anna"))
        let (file, isOver) = (relay.directory("copy"), Flag())
        let (made, registered) = try await withThrowingTaskGroup(of: Int.self) { group in
            group.addTask { try await register(fixture, until: isOver) }
            defer { isOver.set() }
            let made = try await fixture.json("backup", file)
            isOver.set()
            return (made, try await group.next() ?? 0)
        }
        #expect(made["format"] == (kind == .file ? "sqlite" : "sql") && made["file"] == .string(file))
        let tables = try #require(made["tables"]?.object)
        #expect(Set(tables.members.map(\.name)).isSuperset(of: StoreTables.names))
        // The copy shows a single moment, in which some of the users were registered.
        let users = try #require(tables["user"]?.integer)
        #expect((1...Int64(registered) + 1).contains(users))
        #expect(tables["device"] == 1 && tables["website"] == 1)
        #expect(try mode(file) == 0o600)
        let names = TemporaryDirectory.names(in: relay.directory("")).filter { $0.hasPrefix("copy") }
        #expect(names == ["copy"])

        // The relay worked on, and has more users than the copy afterwards.
        _ = try await fixture.registered("late")
        await relay.stop()
        let (settings, store) = (relay.settings, try await putBack(file, of: relay))
        let registrations = "SELECT count(*) FROM audit WHERE event = 'user.registered'"
        #expect(try await blocking { try RunningRelay.count(registrations, at: store) } == users)
        let verified = try await BuiltProgram.twoefay("--config", settings, "rows", "verify")
        #expect(verified.status == 0, "\(verified.output)\(verified.errors)")
        let shown = try await BuiltProgram.twoefay("--config", settings, "user", "show", "anna", "--website", "shop")
        #expect(shown.status == 0 && shown.output.contains(phone.device), "\(shown.output)\(shown.errors)")
        let late = try await BuiltProgram.twoefay("--config", settings, "user", "show", "late", "--website", "shop")
        #expect(late.status == 3, "\(late.output)")
        // The relay runs with it.
        let again = try Child(try BuiltProgram.twoefayd.path, ["--config", settings])
        _ = try await again.line(.errors, with: "event=daemon.started")
        _ = try await fixture.registered("next")
        again.signal(SIGTERM)
        #expect(await again.ended().status == 0)
    }

    /// Puts a copy back as docs/operators/backup.md says. Returns the store that has it.
    private func putBack(_ file: String, of relay: RunningRelay) async throws -> StorageURL {
        switch relay.storage {
        case .sqlite(let path):
            for suffix in ["", "-wal", "-shm"] { rename(path + suffix, "\(path)\(suffix).old") }
            let copied = try await Child.run("cp", ["--preserve=mode", file, path])
            try #require(copied.status == 0)
            return relay.storage
        default:
            let (server, database) = try await blocking {
                let server = try MariaDBServer.shared()
                return (server, try server.freshDatabase())
            }
            let loaded = try await Child.run(
                "sh", ["-c", "mariadb --no-defaults --user=root --socket=\(server.socket) \(database) < \(file)"])
            try #require(loaded.status == 0, "\(loaded.errors)")
            try relay.change { settings in try settings.set("storage", to: server.url(database)) }
            let migrated = try await BuiltProgram.twoefay("--config", relay.settings, "migrate")
            try #require(migrated.status == 0, "\(migrated.errors)")
            return try StorageURL(server.url(database))
        }
    }

    /// The relay does without a host that is down, and so does the copy.
    @Test func nextHostIsTried() async throws {
        let fixture = try await Fixture(.mariadb)
        guard case .mariadb(let server) = fixture.relay.storage else {
            Issue.record("\(fixture.relay.storage)")
            return
        }
        let working = try await blocking { try MariaDBServer.shared().url(server.database) }
        // Nothing listens on port 1.
        let hosts = working.replacing("@127.0.0.1", with: "@127.0.0.1:1,127.0.0.1")
        let file = fixture.relay.directory("copy")
        let made = try await fixture.json("backup", file, "--storage", hosts)
        #expect(made["tables"]?.object?["website"] == 1)
    }

    @Test(arguments: kinds) func existingFileIsNotReplaced(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let file = fixture.relay.directory("copy")
        try TextFile.write("precious", to: file)
        try await fixture.refused(["backup", file], 4, "\(file) exists")
        #expect(try TextFile.read(file) == "precious")
        // Nor is one that another run is writing.
        let other = fixture.relay.directory("other")
        try TextFile.write("", to: "\(other).partial")
        try await fixture.refused(["backup", other], 4, "\(other).partial exists")
    }

    /// A copy that cannot be completed leaves nothing that looks like one.
    @Test(arguments: kinds) func failedBackupLeavesNoFile(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        try await fixture.refused(["backup", "/nowhere/copy"], 1, "/nowhere/copy.partial: No such file")
        let file = fixture.relay.directory("copy")
        let small = try await Child.run(
            "sh",
            [
                "-c", "ulimit -f 16; trap '' XFSZ; exec \"$0\" --config \"$1\" backup \"$2\"",
                try BuiltProgram.twoefay.path, fixture.relay.settings, file,
            ])
        #expect(small.status == 1, "\(small.output)")
        #expect(TemporaryDirectory.names(in: fixture.relay.directory("")).allSatisfy { !$0.hasPrefix("copy") })
    }
}
