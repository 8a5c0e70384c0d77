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
