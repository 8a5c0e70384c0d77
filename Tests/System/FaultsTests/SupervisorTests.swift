import Glibc
import TestSupport
import Testing
import World

/// The built programs under a service manager, whose end of the socket the tests hold.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct SupervisorTests {
    private func start(
        _ program: BuiltProgram, _ settings: String, _ socket: NotifySocket, watchdog: String? = nil
    ) throws -> Child {
        var environment = ["NOTIFY_SOCKET": socket.address]
        if let watchdog { environment["WATCHDOG_USEC"] = watchdog }
        return try Child(try program.path, ["--config", settings], environment: environment)
    }

    /// The relay sends from inside its restrictions: each of these messages but the first comes
    /// after them.
    @Test(arguments: [true, false]) func relayReportsItsState(isAbstract: Bool) async throws {
        let relay = try await RunningRelay.start()
        await relay.stop()
        let socket = try NotifySocket(path: isAbstract ? nil : relay.directory("notify"))
        let child = try start(.twoefayd, relay.settings, socket)
        let serving = ["READY=1", "STATUS=Serves at 127.0.0.1:\(relay.port)."]
        #expect(try socket.next() == serving)
        if !Sanitizer.isOn { _ = try await child.line(.errors, with: "event=hardening.applied name=landlock,seccomp") }

        let before = SystemTime().instant().nanoseconds / 1000
        child.signal(SIGHUP)
        let reloading = try socket.next()
        #expect(reloading.first == "RELOADING=1", "\(reloading)")
        let moment = try #require(
            reloading.first { $0.hasPrefix("MONOTONIC_USEC=") }.flatMap { Int64($0.dropFirst(15)) })
        #expect((before...SystemTime().instant().nanoseconds / 1000).contains(moment))
        #expect(try socket.next() == serving)

        try relay.change { try $0.set("log.level", to: "deafening") }
        child.signal(SIGHUP)
        #expect(try socket.next().first == "RELOADING=1")
        let failed = try socket.next()
        #expect(failed.first == "READY=1", "\(failed)")
        #expect(failed.last?.hasPrefix("STATUS=The last reload failed and changed nothing: ") == true, "\(failed)")
        #expect(failed.last?.contains("log.level") == true, "\(failed)")

        child.signal(SIGTERM)
        #expect(try socket.next().first == "STOPPING=1")
        #expect(await child.ended().status == 0)
    }

    /// A new process would not bring the store back, so the watchdog must not end this one.
    @Test func signsOfLifeGoOnWithoutTheStore() async throws {
        let server = try await blocking { try MariaDBServer() }
        let relay = try await RunningRelay.start { try server.store(for: &$0) }
        await relay.stop()
        let socket = try NotifySocket(path: nil)
        let child = try start(.twoefayd, relay.settings, socket, watchdog: "100000")
        _ = try socket.next("READY=1")
        server.kill()
        // Somebody must read meanwhile, because the kernel's queue of a socket is short.
        async let earlier = socket.next("the store is down")
        _ = try await child.line(.errors, with: "event=store.unavailable")
        try socket.mark("the store is down")
        _ = try await earlier
        for _ in 0..<20 { #expect(try socket.next() == ["WATCHDOG=1"]) }
        child.signal(SIGKILL)
        _ = await child.ended()
    }

    @Test func keyProcessReportsItsState() async throws {
        let relay = try await RunningRelay.start()
        await relay.stop()
        try #require(mkdir(relay.file("keys"), 0o700) == 0)
        try relay.change { try $0.set("key_service", to: "unix:keys/socket") }
        let socket = try NotifySocket(path: nil)
        // The kernel's queue of a socket is short, so the second sign of life comes an hour later.
        let keys = try start(.keys, relay.settings, socket, watchdog: "7200000000")
        let serving = ["READY=1", "STATUS=Serves at \(relay.file("keys/socket"))."]
        #expect(try socket.next("READY=1") == serving)
        #expect(try socket.next() == ["WATCHDOG=1"])
        keys.signal(SIGHUP)
        _ = try socket.next("RELOADING=1")
        #expect(try socket.next("READY=1") == serving)
        try TextFile.write("broken", to: relay.file("master.key"))
        keys.signal(SIGHUP)
        _ = try socket.next("RELOADING=1")
        let failed = try socket.next("READY=1")
        #expect(failed.last?.hasPrefix("STATUS=The last reload failed") == true, "\(failed)")
        keys.signal(SIGTERM)
        _ = try socket.next("STOPPING=1")
        #expect(await keys.ended().status == 0)
    }

    @Test func relayServesWithoutTheServiceManagersSocket() async throws {
        let relay = try await RunningRelay.start()
        await relay.stop()
        let child = try Child(
            try BuiltProgram.twoefayd.path, ["--config", relay.settings],
            environment: ["NOTIFY_SOCKET": relay.directory("nobody")])
        let line = try await child.line(.errors, with: "event=daemon.unmanaged")
        #expect(line.contains("level=warning") && line.contains(relay.directory("nobody")), "\(line)")
        _ = try await child.line(.errors, with: "event=daemon.started")
        child.signal(SIGTERM)
        #expect(await child.ended().status == 0)
    }
}
