import Glibc
import TestSupport
import Testing

/// The check of a container, `twoefayd --health`, beside a relay that runs.
@Suite("twoefayd --health", .timeLimit(.minutes(15)), .mayBlock) struct HealthTests {
    private func health(_ relay: RunningRelay) async throws -> Child.Ended {
        try await BuiltProgram.twoefayd("--config", relay.settings, "--health")
    }

    /// A container need not know the name by which others reach it.
    @Test func relayIsFoundAtItsAddress() async throws {
        let relay = try await RunningRelay.start { try $0.set("origin", to: "https://login.example.org") }
        let ended = try await health(relay)
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output == "The relay at 127.0.0.1:\(relay.port) answers.\n")
        // The kernel takes this address as this machine's own.
        try relay.change { try $0.set("listen", to: "0.0.0.0:\(relay.port)") }
        #expect(try await health(relay).status == 0)
        await relay.stop()
        let none = try await health(relay)
        #expect(none.status == 5 && none.errors.contains("does not answer"), "\(none.errors)")
    }

    @Test func certificateMustHaveTheOriginsName() async throws {
        let relay = try await RunningRelay.start()
        try relay.change { try $0.set("origin", to: "https://elsewhere.example.org") }
        let ended = try await health(relay)
        #expect(ended.status == 5 && ended.errors.contains("does not answer"), "\(ended.errors)")
    }

    /// Whoever restarts a container that is not healthy would gain nothing while the store is down.
    @Test func relayWithoutItsStoreIsAlive() async throws {
        let server = try await blocking { try MariaDBServer() }
        let relay = try await RunningRelay.start { try server.store(for: &$0) }
        server.kill()
        try await relay.logged("event=store.unavailable")
        let ended = try await health(relay)
        #expect(ended.status == 0, "\(ended.errors)")
    }

    /// The relay takes this machine for a balancer, and expects a PROXY header from it.
    @Test func relayBehindABalancerOnItsMachineAnswers() async throws {
        let relay = try await RunningRelay.start { try $0.set("proxies", to: "\"127.0.0.0/8, 10.0.0.5\"") }
        let ended = try await health(relay)
        #expect(ended.status == 0, "\(ended.errors)")
        // Without the setting, the caller sends no header, and is refused: the relay does expect one.
        try relay.change { try $0.set("proxies", to: "\"10.0.0.5\"") }
        #expect(try await health(relay).status == 5)
        try await relay.logged("event=connection.refused")
        relay.signal(SIGHUP)
        try await relay.logged("event=daemon.reloaded")
        #expect(try await health(relay).status == 0)
    }
}
