import CLinux
import Glibc
import JSON
import Storage
import TestSupport
import Testing

/// The renames of `twoefay restore` in SQLite: `twoefay.db`, then its log, then the new store. A run that
/// ends before, between or after them leaves the former store or the new one, and never parts of both.
@Suite("twoefay restore: order", .timeLimit(.minutes(15)), .mayBlock) struct RestoreOrderTests {
    private static let late = "SELECT count(*) FROM user WHERE username = 'late'"

    private struct Lost {
        let fixture: Fixture
        let copy: String
        var relay: RunningRelay { fixture.relay }
        var store: String { relay.file("twoefay.db") }
        var former: String { store + ".before-restore-1" }
        var unfinished: String { store + ".restoring" }
    }

    /// A store whose last change, the user `late`, is only in its log, because the relay was killed. The copy
    /// does not have the user.
    private func lose() async throws -> Lost {
        let fixture = try await Fixture(.file)
        _ = try await fixture.registered("anna")
        let copy = fixture.relay.directory("copy")
        _ = try await fixture.json("backup", copy)
        _ = try await fixture.registered("late")
        await fixture.relay.kill()
        let lost = Lost(fixture: fixture, copy: copy)
        var state = stat()
        try #require(stat(lost.store + "-wal", &state) == 0 && state.st_size > 0)
        return lost
    }

    private func hasLate(_ store: String) async throws -> Bool {
        let found = try await Child.run("sqlite3", [store, Self.late])
        try #require(found.status == 0, "\(found.errors)")
        return found.output == "1\n"
    }

    /// No relay starts without a store, and none makes a new one.
    private func expectNoStart(_ lost: Lost) async throws {
        let ended = try await Child.run(try BuiltProgram.twoefayd.path, ["--config", lost.relay.settings])
        #expect(ended.status != 0 && ended.errors.contains("twoefay.db"), "\(ended.errors)")
        #expect(access(lost.store, F_OK) != 0)
    }

    private func expectNewStore(_ lost: Lost) async throws {
        #expect(try await !hasLate(lost.store))
        #expect(access(lost.unfinished, F_OK) != 0)
        try await lost.relay.restart()
        #expect(try await lost.fixture.shop.curl("GET", "/user/anna").status == 200)
        #expect(try await lost.fixture.shop.curl("GET", "/user/late").status == 404)
    }

    /// The new store is complete, and nothing was renamed.
    @Test func formerStoreStaysBeforeTheFirstRename() async throws {
        let lost = try await lose()
        // A killed run leaves the new store under its own name.
        let copied = try await Child.run("/bin/cp", [lost.copy, lost.unfinished])
        try #require(copied.status == 0)
        try await lost.relay.restart()
        #expect(try await lost.fixture.shop.curl("GET", "/user/late").status == 200)
        await lost.relay.stop()
        _ = try await lost.fixture.json("restore", lost.copy, "--yes")
        try await expectNewStore(lost)
    }

    /// The database has its other name, and its log does not. A file that is in the way stops the run there.
    @Test func logStaysWithItsDatabaseBetweenTheRenames() async throws {
        let lost = try await lose()
        try TextFile.write("", to: lost.former + "-wal")
        let stopped = try await lost.fixture.tool(["restore", lost.copy, "--yes"])
        #expect(stopped.status == 1 && stopped.errors.contains("-wal exists already"), "\(stopped.errors)")
        #expect(access(lost.store, F_OK) != 0 && access(lost.former, F_OK) == 0)
        #expect(access(lost.store + "-wal", F_OK) == 0 && access(lost.unfinished, F_OK) == 0)
        try await expectNoStart(lost)
        #expect(access(lost.store + "-wal", F_OK) == 0)
        try #require(unlink(lost.former + "-wal") == 0)
        _ = try await lost.fixture.json("restore", lost.copy, "--yes")
        // The log went to its database, and not to the new one.
        #expect(access(lost.former + "-wal", F_OK) == 0)
        try await expectNewStore(lost)
        #expect(try await hasLate(lost.former))
    }

    /// Everything has its other name but the new store.
    @Test func newStoreIsMissingBeforeTheLastRename() async throws {
        let lost = try await lose()
        _ = try await lost.fixture.json("restore", lost.copy, "--yes")
        try #require(rename(lost.store, lost.unfinished) == 0)
        try await expectNoStart(lost)
        _ = try await lost.fixture.json("restore", lost.copy, "--yes")
        try await expectNewStore(lost)
        #expect(try await hasLate(lost.former))
    }

    /// The run has done all renames: a further one begins anew, and keeps what it replaces.
    @Test func repeatedRunKeepsBothFormerStores() async throws {
        let lost = try await lose()
        _ = try await lost.fixture.json("restore", lost.copy, "--yes")
        _ = try await lost.fixture.json("restore", lost.copy, "--yes")
        #expect(access(lost.store + ".before-restore-2", F_OK) == 0)
        try await expectNewStore(lost)
        #expect(try await hasLate(lost.former))
    }
}
