import Glibc
import TestSupport
import Testing

/// The revocation list of built programs, read with curl and judged by OpenSSL.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RevocationListProcessTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// Downloads the list, and returns what OpenSSL says about the certificate of a phone.
    private func verdict(_ fixture: Fixture, of certificate: String) async throws -> Child.Ended {
        let caller = fixture.relay.caller()
        let list = try await Child.run(
            "curl",
            [
                "--silent", "--show-error", "--fail", "--http2", "--cacert", caller.authorityPath, "--connect-to",
                "::127.0.0.1:\(caller.port)", "--output", directory("crl.der"), "\(caller.origin)/crl",
            ])
        try #require(list.status == 0, "\(list)")
        let authority = fixture.relay.file("device-ca.pem")
        let read = try await Child.run(
            "openssl",
            [
                "crl", "-inform", "DER", "-in", directory("crl.der"), "-CAfile", authority, "-verify", "-out",
                directory("crl.pem"),
            ])
        #expect(read.errors.contains("verify OK"), "\(read)")
        try TextFile.write(certificate, to: directory("phone.pem"))
        return try await Child.run(
            "openssl",
            [
                "verify", "-x509_strict", "-purpose", "sslclient", "-crl_check", "-CAfile", authority, "-CRLfile",
                directory("crl.pem"), directory("phone.pem"),
            ])
    }

    /// Binds a phone. Returns it with its certificate.
    private func enrol(_ fixture: Fixture, _ username: String) async throws -> (phone: Phone, certificate: String) {
        let (token, code) = try await fixture.register(username)
        let key = try TestPhone(pushToken: Fixture.pushToken())
        let reply = try await fixture.anyone.send(
            "POST", "/verify", try fixture.verifyBody(key, token: token, code: code))
        return (try fixture.phone(key, reply), try #require(reply["certificate"]))
    }

    @Test(arguments: [false, true], [StoreKind.file, .mariadb])
    func unboundPhoneIsOnTheList(hasKeyProcess: Bool, kind: StoreKind) async throws {
        let setting = hasKeyProcess ? try await KeyProcessFixture.start(kind) : nil
        let fixture = if let setting { setting.fixture } else { try await Fixture.start(kind) }
        let (lost, kept) = (try await enrol(fixture, "anna"), try await enrol(fixture, "berta"))
        // The first list of this relay is made after the phone is unbound, so no interval passes.
        #expect(try await lost.phone.client.send("DELETE", "/device").status == 204)
        let refused = try await verdict(fixture, of: lost.certificate)
        #expect(refused.status != 0 && refused.errors.contains("certificate revoked"), "\(refused)")
        #expect(try await verdict(fixture, of: kept.certificate).status == 0)
        try await setting?.keys.logged("event=keys.crl process=\(fixture.relay.pid) count=1")
    }

    @Test func lastListIsServedWhileTheKeyProcessIsAway() async throws {
        let setting = try await KeyProcessFixture.start()
        let fixture = setting.fixture
        let phone = try await enrol(fixture, "anna")
        #expect(try await verdict(fixture, of: phone.certificate).status == 0)
        await setting.keys.end(SIGKILL)
        #expect(try await verdict(fixture, of: phone.certificate).status == 0)
        await fixture.relay.stop()
    }
}
