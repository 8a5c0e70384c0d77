import Glibc
import TestSupport
import Testing

/// The kernel's view of the built daemon while it serves.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct HardeningTests {
    @Test func keyMemoryIsNeitherDumpedNorSwapped() async throws {
        let relay = try await RunningRelay.start()
        let limits = try TextFile.read("/proc/\(relay.pid)/limits").split(separator: "\n")
        let core = try #require(limits.first { $0.hasPrefix("Max core file size") })
        #expect(core.split(separator: " ").filter { $0 == "0" }.count == 2, "\(core)")
        // A sanitizer replaces mlock by a function that does nothing and reports success.
        if Sanitizer.isOn { return }
        // OpenSSL's keys (2 MiB) and the relay's own keys are locked; or the log says that the limit is too low.
        let status = try TextFile.read("/proc/\(relay.pid)/status").split(separator: "\n")
        let locked = try #require(status.first { $0.hasPrefix("VmLck:") }?.split { $0 == "\t" || $0 == " " }[1])
        let isLocked = try #require(Int(locked)) > 2048
        #expect(isLocked != relay.log.contains("event=hardening.memory"), "\(locked) kB\n\(relay.log)")
    }

    @Test func everyThreadRunsUnderTheFilter() async throws {
        let relay = try await RunningRelay.start()
        let threads = TemporaryDirectory.names(in: "/proc/\(relay.pid)/task")
        #expect(threads.count > 2)
        for thread in threads {
            let status = try TextFile.read("/proc/\(relay.pid)/task/\(thread)/status")
            #expect(status.contains("NoNewPrivs:\t1\n"), "\(status)")
            #expect(status.contains("Seccomp:\t\(Sanitizer.isOn ? 0 : 2)\n"), "\(status)")
        }
        if Sanitizer.isOn { return }
        #expect(relay.log.contains("event=hardening.applied name=landlock,seccomp"), "\(relay.log)")
        #expect(try await relay.tool("status").contains("Its hardening is complete."))
        let checked = try await Child.run(try BuiltProgram.twoefayd.path, ["--config", relay.settings, "--check"])
        #expect(checked.output.contains("Hardening (on) is complete"), "\(checked.output)")
    }

    @Test func disabledHardeningIsLogged() async throws {
        let relay = try await RunningRelay.start { try $0.set("hardening", to: "off") }
        #expect(try TextFile.read("/proc/\(relay.pid)/status").contains("Seccomp:\t0\n"))
        #expect(relay.log.contains("event=hardening.off"))
        #expect(try await relay.tool("status").contains("Its hardening is off."))
    }

    @Test func reloadOutsideTheRulesNeedsARestart() async throws {
        let fixture = try await Fixture.start()
        let outside = try TemporaryDirectory()
        mkdir(outside("templates"), 0o700)
        let before = try TextFile.read(fixture.relay.settings)
        var settings = before
        try settings.set("templates.directory", to: outside("templates"))
        try TextFile.write(settings, to: fixture.relay.settings)
        fixture.relay.signal(SIGHUP)
        let logged = try await fixture.relay.logged("event=daemon.reload ")
        #expect(logged.contains("level=error") && logged.contains("needs a restart"), "\(logged)")
        #expect(try await fixture.shop.send("GET", "/user/nobody").status == 404)
        // The original settings are accepted again. After a restart, the new directory is allowed.
        try TextFile.write(before, to: fixture.relay.settings)
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.reloaded")
        try TextFile.write(settings, to: fixture.relay.settings)
        await fixture.relay.stop()
        try await fixture.relay.restart()
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.reloaded")
    }
}
