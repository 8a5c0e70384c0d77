import Glibc
import TestSupport
import Testing

/// The program `twoefay-keys` with the key of the phones' authority on a token.
@Suite(
    .timeLimit(.minutes(5)), .mayBlock, .enabled(if: SoftToken.isThere, "SoftHSM is not installed (package softhsm2)"))
struct TokenTests {
    /// Returns a stopped relay whose key is on a token and no longer in a file.
    private static func installed() async throws -> (fixture: Fixture, token: SoftToken) {
        let fixture = try await Fixture.start()
        await fixture.relay.stop()
        let token = try await SoftToken(key: fixture.relay.file("device-ca.key"))
        try #require(unlink(fixture.relay.file("device-ca.key")) == 0)
        try TextFile.write("123456\n", to: fixture.relay.file("pin"))
        chmod(fixture.relay.file("pin"), 0o600)
        try fixture.relay.change { settings in
            try settings.set("key_service", to: "unix:socket")
            try SoftToken.set(in: &settings, pinFile: "pin")
        }
        return (fixture, token)
    }

    @Test func phonesAreBoundWithCertificatesThatTheTokenSigned() async throws {
        let (fixture, token) = try await Self.installed()
        let keys = try await KeyProcess.start(fixture.relay.settings, environment: token.environment)
        #expect(keys.log.contains("event=hardening.off"))
        try await fixture.relay.restart()
        let (user, phone) = try await fixture.enrol("anna")
        try await keys.logged("event=keys.issued device=\(phone.device)")
        // The relay's TLS verifies the certificate with the same authority as before.
        #expect(try await phone.approve(try await fixture.login(user)).status == 200)
        keys.signal(SIGHUP)
        try await keys.logged("event=keys.reloaded")
        let (second, other) = try await fixture.enrol("berta")
        #expect(try await other.approve(try await fixture.login(second)).status == 200)
        #expect(await keys.end(SIGTERM).status == 0)
    }

    @Test(
        arguments: [
            ("pkcs11.key", "another", "there is no private key with the label another"),
            ("pkcs11.token", "another", "there is no token with the label another"),
            ("pkcs11.module", "/nowhere.so", "/nowhere.so"),
            ("pkcs11.module", "libc.so.6", "has no C_GetFunctionList"),
            ("pkcs11.pin_file", "wrong-pin", "the PIN is wrong"),
            ("tls.phones", "website-ca.pem", "does not match the certificate"),
            ("hardening", "required", "a process with a PKCS#11 module cannot be restricted"),
        ])
    func tokenFaultIsReported(setting: String, value: String, message: String) async throws {
        let (fixture, token) = try await Self.installed()
        try TextFile.write("000000\n", to: fixture.relay.file("wrong-pin"))
        chmod(fixture.relay.file("wrong-pin"), 0o600)
        // A library that is not a PKCS#11 module: the libc of this process.
        let mapped = try TextFile.read("/proc/self/maps").split { $0 == "\n" || $0 == " " }
        symlink(String(try #require(mapped.first { $0.hasSuffix("/libc.so.6") })), fixture.relay.file("libc.so.6"))
        try fixture.relay.change { try $0.set(setting, to: value) }
        let ended = try await Child(
            try BuiltProgram.keys.path, ["--config", fixture.relay.settings], environment: token.environment
        ).ended()
        #expect(ended.status == 1)
        #expect(ended.errors.contains(message), "\(ended.errors)")
        #expect(!ended.errors.contains("000000"))
    }
}
