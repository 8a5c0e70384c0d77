import Glibc
import TestSupport
import Testing

/// A relay that is started a second time by mistake. It must not take the work of the first one.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct SecondRelayTests {
    /// Writes settings for another address beside those of a relay. Returns their path.
    private func beside(_ relay: RunningRelay) throws -> String {
        var text = try TextFile.read(relay.settings)
        try text.set("listen", to: "127.0.0.1:0")
        let path = relay.file("second.yaml")
        try TextFile.write(text, to: path)
        return path
    }

    @Test func relayOnTheSameSQLiteFileIsRefused() async throws {
        let fixture = try await Fixture.start()
        let relay = fixture.relay
        let second = try await BuiltProgram.twoefayd("--config", try beside(relay))
        #expect(second.status == 4)
        #expect(
            second.errors.contains("twoefay.db is in use by another relay, process \(relay.pid)"), "\(second.errors)")
        #expect(try relay.count("SELECT count(*) FROM relay") == 1)
        // The tools take no lock, and the relay works as before.
        let list = try await BuiltProgram.twoefay("--config", relay.settings, "website", "list")
        #expect(list.status == 0, "\(list.errors)")
        let (token, phone) = try await fixture.enrol("anna")
        try await fixture.finish(try await fixture.login(token), by: phone)
        #expect(!relay.log.contains("event=relay.dead"))
    }

    /// Another name of the file leads to the same lock, and so does a file without its neighbours.
    @Test(arguments: ["symbolic link", "hard link", "deleted lock file"])
    func lockHoldsForEveryNameOfTheFile(way: String) async throws {
        let relay = try await RunningRelay.start()
        let (store, other) = (relay.file("twoefay.db"), relay.file("other.db"))
        switch way {
        case "symbolic link": #expect(symlink(store, other) == 0)
        case "hard link": #expect(link(store, other) == 0)
        default: #expect(unlink("\(store).lock") == 0)
        }
        let settings = try beside(relay)
        if way != "deleted lock file" {
            var text = try TextFile.read(settings)
            try text.set("storage", to: "sqlite:other.db")
            try TextFile.write(text, to: settings)
        }
        let second = try await BuiltProgram.twoefayd("--config", settings)
        #expect(second.status == 4 && second.errors.contains("is in use by another relay"), "\(second.errors)")
        #expect(try relay.count("SELECT count(*) FROM relay") == 1)
    }

    @Test func lockEndsWithItsProcess() async throws {
        let relay = try await RunningRelay.start()
        await relay.kill()
        let second = try Child(try BuiltProgram.twoefayd.path, ["--config", try beside(relay)])
        _ = try await second.line(.errors, with: "event=daemon.started")
        second.signal(SIGTERM)
        #expect(await second.ended().status == 0)
        try await relay.restart()
    }

    /// Both stores: a relay that cannot listen ends before it touches the store.
    @Test(arguments: [StoreKind.file, .mariadb]) func relayThatCannotListenLeavesTheStoreAlone(kind: StoreKind)
        async throws
    {
        let relay = try await RunningRelay.start(kind)
        let second = try await BuiltProgram.twoefayd("--config", relay.settings)
        #expect(second.status == 5)
        #expect(second.errors.contains("cannot listen on 127.0.0.1:\(relay.port)"), "\(second.errors)")
        #expect(try relay.count("SELECT count(*) FROM relay") == 1)
        #expect(!relay.log.contains("event=relay.dead"))
    }
}
