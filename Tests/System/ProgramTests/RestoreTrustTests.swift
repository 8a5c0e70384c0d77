import CLinux
import Glibc
import TestSupport
import Testing

/// `twoefay restore` with copies and exports that somebody else has written.
@Suite("twoefay restore: foreign files", .timeLimit(.minutes(15)), .mayBlock) struct RestoreTrustTests {
    private func emptied(_ fixture: Fixture) async throws {
        await fixture.relay.stop()
        let url = try await blocking {
            let server = try MariaDBServer.shared()
            return server.url(try server.freshDatabase())
        }
        try fixture.relay.change { settings in try settings.set("storage", to: url) }
    }

    /// `mariadb` has commands of its own, such as one that starts a shell.
    @Test func lineOfACopyStartsNoProgram() async throws {
        let fixture = try await Fixture(.mariadb)
        let (copy, trace) = (fixture.relay.directory("copy"), fixture.relay.directory("trace"))
        _ = try await fixture.json("backup", copy)
        try await emptied(fixture)
        #expect(try await Child.run("/bin/sed", ["-i", "1a system touch \(trace)", copy]).status == 0)
        let ended = try await fixture.tool(["restore", copy, "--yes"])
        #expect(ended.status != 0 && access(trace, F_OK) != 0, "\(ended.output)")
    }

    @Test func triggersOfACopyAreRefused() async throws {
        let fixture = try await Fixture(.mariadb)
        let copy = fixture.relay.directory("copy")
        _ = try await fixture.json("backup", copy)
        try await emptied(fixture)
        let trigger = "CREATE TRIGGER helper BEFORE UPDATE ON user FOR EACH ROW SET NEW.state = 'active';"
        #expect(try await Child.run("/bin/sed", ["-i", "$i \(trigger)", copy]).status == 0)
        let ended = try await fixture.tool(["restore", copy, "--yes"])
        #expect(ended.status == 1 && ended.errors.contains("made programs in the database: helper"), "\(ended)")
    }

    /// Neither an export of another installation nor an older one tells what was revoked.
    @Test func exportMustFitTheCopy() async throws {
        let (fixture, other) = (try await Fixture(.file), try await Fixture(.file))
        let (copy, older) = (fixture.relay.directory("copy"), fixture.relay.directory("older"))
        let foreign = other.relay.directory("foreign")
        _ = try await other.json("audit", "export", "--out", foreign)
        _ = try await fixture.json("audit", "export", "--out", older)
        _ = try await fixture.json("backup", copy)
        await fixture.relay.stop()
        for (export, reason) in [(foreign, "have no row in common"), (older, "no row that the copy does not have")] {
            let ended = try await fixture.tool(["restore", copy, "--yes", "--since", export])
            #expect(ended.status == 1 && ended.errors.contains(reason), "\(ended)")
        }
        // The store is still there.
        try await fixture.relay.restart()
    }

    /// The relay's account can write to the directory of the store, and plant links at the names that the
    /// restore of root uses. Root neither writes to their targets nor gives them away.
    @Test(.enabled(if: getuid() == 0, "only root can give files away"))
    func plantedLinksAreNotFollowed() async throws {
        let fixture = try await Fixture(.file)
        let relay = fixture.relay
        let copy = relay.directory("copy")
        _ = try await fixture.json("backup", copy)
        await relay.stop()
        let account: uid_t = 5
        try #require(chown(relay.installation, account, account) == 0)
        let (store, secret) = (relay.file("twoefay.db"), relay.directory("secret"))
        try TextFile.write("of root", to: secret)
        for name in [".restoring", ".restoring-wal", ".restoring-journal", ".restoring-shm", "-journal"] {
            unlink(store + name)
            try #require(symlink(secret, store + name) == 0, "\(name)")
        }
        for _ in 0..<2 {
            _ = try await fixture.json("restore", copy, "--yes")
            var state = stat()
            #expect(lstat(store, &state) == 0 && state.st_mode & S_IFMT == S_IFREG && state.st_uid == account)
            #expect(try TextFile.read(secret) == "of root")
            #expect(stat(secret, &state) == 0 && state.st_uid == 0)
            // The next run finds a link in the place of the store itself.
            try #require(unlink(store) == 0 && symlink(secret, store) == 0)
        }
    }
}
