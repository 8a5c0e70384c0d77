import Glibc
import JSON
import TestSupport
import Testing

/// The built programs `twoefayd` and `twoefay-keys`, each in its process.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct KeyProcessTests {
    @Test func relayWithoutKeyFilesBindsPhones() async throws {
        let setting = try await KeyProcessFixture.start()
        let (fixture, keys) = (setting.fixture, setting.keys)
        try await keys.logged("event=keys.unwrapped process=\(fixture.relay.pid) ")
        let (token, phone) = try await fixture.enrol("anna")
        try await keys.logged("event=keys.issued device=\(phone.device) process=\(fixture.relay.pid)")
        #expect(try await phone.approve(try await fixture.login(token)).status == 200)
        let open = KeyProcessFixture.openFiles(of: fixture.relay.pid)
        #expect(!open.isEmpty)
        for name in ["master.key", "device-ca.key"] { #expect(!open.contains { $0.contains(name) }, "\(open)") }
        #expect(TemporaryDirectory.mode(of: setting.socket) == 0o600)
        // Once, at the start of the relay.
        #expect(keys.log.split(separator: "\n").filter { $0.contains("event=keys.unwrapped") }.count == 1)
        #expect(try await fixture.ready("key_service") == "ok")
        #expect(await keys.end(SIGTERM).status == 0)
        #expect(access(setting.socket, F_OK) != 0)
    }

    @Test func loginsGoOnWhileTheServiceIsAway() async throws {
        var setting = try await KeyProcessFixture.start()
        let fixture = setting.fixture
        let (token, phone) = try await fixture.enrol("anna")
        await setting.keys.end(SIGKILL)

        #expect(try await phone.approve(try await fixture.login(token)).status == 200)
        #expect(try await fixture.ready("key_service") == "missing")
        #expect(try await fixture.relay.tool("status").contains("The key service does not answer"))
        let registered = try await fixture.register("berta")
        let second = try TestPhone(pushToken: Fixture.pushToken())
        let body = try fixture.verifyBody(second, token: registered.token, code: registered.code)
        let refused = try await fixture.anyone.send("POST", "/verify", body)
        #expect(refused.status == 503 && refused.retryAfter != nil, "\(refused)")
        try await fixture.relay.logged("event=device.certificate")
        // The relay keeps the keys that it has; the next successful reload reads the current ones.
        fixture.relay.signal(SIGHUP)
        let failed = try await fixture.relay.logged("event=daemon.reload ")
        #expect(failed.contains("cannot be reached"), "\(failed)")
        #expect(try await phone.approve(try await fixture.login(token)).status == 200)

        try await setting.restartKeys()
        let bound = try fixture.phone(second, try await fixture.anyone.send("POST", "/verify", body))
        #expect(try await bound.approve(try await fixture.login(registered.token)).status == 200)
        #expect(try await fixture.ready("key_service") == "ok")
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.reloaded")
    }

    @Test func relayWithoutTheServiceDoesNotStart() async throws {
        let setting = try await KeyProcessFixture.start()
        await setting.fixture.relay.stop()
        await setting.keys.end(SIGKILL)
        let ended = try await Child.run(
            try BuiltProgram.twoefayd.path, ["--config", setting.fixture.relay.settings, "--check"])
        #expect(ended.status == 1)
        #expect(ended.errors.contains("keys: the key service cannot be reached at \(setting.socket)"), "\(ended)")
    }

    @Test func keyProcessIsRestrictedToo() async throws {
        let setting = try await KeyProcessFixture.start()
        let status = try TextFile.read("/proc/\(setting.keys.pid)/status")
        #expect(status.contains("Seccomp:\t\(Sanitizer.isOn ? 0 : 2)\n"), "\(status)")
        let limits = try TextFile.read("/proc/\(setting.keys.pid)/limits").split(separator: "\n")
        let core = try #require(limits.first { $0.hasPrefix("Max core file size") })
        #expect(core.split(separator: " ").filter { $0 == "0" }.count == 2, "\(core)")
        if Sanitizer.isOn { return }
        #expect(setting.keys.log.contains("event=hardening.applied name=landlock,seccomp"), "\(setting.keys.log)")
        #expect(setting.fixture.relay.log.contains("event=hardening.applied name=landlock,seccomp"))
    }

    @Test(.enabled(if: getuid() == 0, "only root can act as another user"))
    func otherUserIsRefusedUnlessNamed() async throws {
        let fixture = try await Fixture.start()
        await fixture.relay.stop()
        try fixture.relay.change { try $0.set("key_service", to: "unix:socket") }
        // The other user can reach the socket, so only the service itself refuses.
        for path in [fixture.relay.directory.path, fixture.relay.installation] { chmod(path, 0o711) }
        let socket = fixture.relay.file("socket")
        for (arguments, isAllowed) in [([], false), (["--peer", "12345"], true)] as [([String], Bool)] {
            let keys =
                try await isAllowed
                ? KeyProcess.start(fixture.relay.settings, arguments[0], arguments[1])
                : KeyProcess.start(fixture.relay.settings)
            #expect(TemporaryDirectory.mode(of: socket) == (isAllowed ? 0o660 : 0o600))
            chmod(socket, 0o666)
            let answer = try await Self.ask(socket, as: 12345)
            #expect(answer.contains("sealing") == isAllowed, "\(answer)")
            if !isAllowed {
                let line = try await keys.logged("event=keys.stranger")
                #expect(line.contains("user 12345 may not use this service"), "\(line)")
            }
            await keys.end(SIGTERM)
        }
    }

    /// Unwraps as another user, and returns the answer of the service.
    private static func ask(_ socket: String, as user: Int) async throws -> String {
        let script = """
            import socket, sys
            line = socket.socket(socket.AF_UNIX)
            line.connect(sys.argv[1])
            try:
                line.sendall(bytes([0, 0, 0, 17]) + b'{"verb":"unwrap"}')
                print(line.recv(200))
            except OSError as problem:
                print(problem)
            """
        // The system's own Python, because another one may not be readable for that user.
        let ended = try await Child(
            "setpriv", ["--reuid", "\(user)", "--regid", "\(user)", "--clear-groups", "python3", "-c", script, socket],
            environment: ["PATH": "/usr/bin:/bin"]
        ).ended()
        try #require(ended.status == 0, "\(ended)")
        return ended.output
    }

    @Test func keyProcessReloadsFilesOnSIGHUP() async throws {
        let setting = try await KeyProcessFixture.start()
        let (fixture, keys) = (setting.fixture, setting.keys)
        keys.signal(SIGHUP)
        let failed = try await keys.logged("event=keys.reload ")
        #expect(failed.contains("level=error") && failed.contains("master.key"), "\(failed)")
        // The relay still has its earlier keys.
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.reloaded")
        for name in ["master.key", "device-ca.key"] {
            try #require(rename(fixture.relay.file("\(name).away"), fixture.relay.file(name)) == 0)
        }
        try await fixture.relay.tool("rekey")
        keys.signal(SIGHUP)
        let reloaded = try await keys.logged("event=keys.reloaded")
        #expect(reloaded.contains("count=2"), "\(reloaded)")
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.reloaded", number: 2)
        let unwrapped = try await keys.logged("event=keys.unwrapped", number: 3)
        #expect(unwrapped.contains("count=2"), "\(unwrapped)")
    }

    @Test func changeOfTheSettingWaitsForARestart() async throws {
        let setting = try await KeyProcessFixture.start()
        let fixture = setting.fixture
        // Another path to the same socket: a reload refuses settings with which no relay would
        // start.
        try fixture.relay.change { try $0.set("key_service", to: "unix:keys/../keys/socket") }
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.restart ")
        try await fixture.relay.logged("event=daemon.reloaded")
        #expect(try await fixture.ready("key_service") == "ok")
    }

    @Test func keyProcessWithoutItsSettingNamesIt() async throws {
        let fixture = try await Fixture.start()
        let ended = try await BuiltProgram.keys("--config", fixture.relay.settings)
        #expect(ended.status == 1)
        #expect(ended.errors.contains("the settings have no 'key_service'"), "\(ended.errors)")
        let help = try await BuiltProgram.keys("--help")
        #expect(help.status == 0 && help.output.contains("--peer USER"), "\(help.output)")
    }
}

extension Fixture {
    /// The state of one dependency, as /ready shows it.
    fileprivate func ready(_ dependency: String) async throws -> String? {
        let reply = try await anyone.send("GET", "/ready/\(dependency)")
        try #require(reply.status == 200, "\(reply)")
        return reply.json["dependencies"]?.object?[dependency]?.string
    }
}
