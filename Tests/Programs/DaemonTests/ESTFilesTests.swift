import Bytes
import Crypto
import TestSupport
import Testing
import World

@testable import Daemon

/// The files of an EST server.
@Suite struct ESTFilesTests {
    private let place: TemporaryDirectory
    private let certificates: TestCertificates
    private var settings = SettingsKeys.defaults

    init() throws {
        place = try TemporaryDirectory()
        certificates = try TestCertificates()
        settings.directory = place.path
        settings.est.url = try ESTAddress(settingsText: "https://est.example.com/.well-known/est/phones")
        settings.est.authority = FileName("est-ca.pem")
        settings.est.certificate = FileName("est-client.pem")
        settings.est.key = FileName("est-client.key")
        settings.tls.phones = FileName("outside-ca.pem")
    }

    private func write(_ pem: [UInt8], _ name: String) throws { try TextFile.write(pem, to: place(name)) }

    /// Writes the client certificate of the relay and its authority, both of which end then.
    private func write(until end: Duration) throws {
        let key = try P256PrivateKey.generate()
        let request = CertificateRequest(
            key: key.publicKey, commonName: "est", notBefore: certificates.now - .seconds(1000),
            notAfter: certificates.now + end, isAuthority: true)
        try write(certificates.websites.issue(request).pem(), "est-ca.pem")
        let client = try certificates.client(from: .seconds(-1000), to: end)
        try write(client.certificatePEM(), "est-client.pem")
        try write(client.keyPEM().reveal(), "est-client.key")
    }

    private func reader() -> LoadedFilesReader { LoadedFilesReader(settings: settings, now: certificates.now) }

    /// Phones log in without new certificates, so the relay starts.
    @Test func expiredFileDoesNotStopTheRelay() throws {
        try write(until: .seconds(-10))
        var reading = reader()
        #expect(reading.est() != nil && reading.problems == [])
        let ends = CertificateExpiry.all(settings).filter { $0.setting.hasPrefix("est.") }
        #expect(ends.map(\.setting) == ["est.ca", "est.certificate"])
        for end in ends {
            #expect(end.warning(at: certificates.now)?.contains("expired at") == true)
        }
    }

    @Test func filesAreWatchedOnlyIfTheyAreUsed() throws {
        try write(until: .seconds(600))
        var unused = settings
        unused.est.url = nil
        #expect(CertificateExpiry.all(settings).count { $0.setting.hasPrefix("est.") } == 2)
        #expect(CertificateExpiry.all(unused).count { $0.setting.hasPrefix("est.") } == 0)
    }

    @Test func wrongFileIsAProblem() throws {
        try write(until: .seconds(600))
        try write(try P256PrivateKey.generate().pem().reveal(), "est-client.key")
        try write(Array("nothing".utf8), "est-ca.pem")
        var reading = reader()
        #expect(reading.est() == nil && reading.problems.count == 2, "\(reading.problems)")
    }

    /// Phones send no intermediate certificates, so only a root can issue what the relay accepts.
    @Test func authorityThatCannotIssueIsRefused() throws {
        try write(until: .seconds(600))
        try TextFile.write(
            MasterKey.generate(SystemRandomness(), at: SystemTime().now()).file, to: place(settings.masterKey.written))
        func problems(_ phones: Certificate) throws -> [String] {
            var reading = reader()
            let keys = reading.keys(phones)
            #expect((keys == nil) == !reading.problems.isEmpty)
            return reading.problems
        }
        let (root, key) = (certificates.phones, try P256PrivateKey.generate().publicKey)
        #expect(try problems(root.certificate) == [])
        let request = CertificateRequest(
            key: key, commonName: "subordinate", notBefore: certificates.now,
            notAfter: certificates.now + .seconds(600), isAuthority: true)
        let subordinate = try problems(try root.issue(request))
        #expect(subordinate.count == 1 && subordinate[0].contains("outside-ca.pem: is not self-signed"))
        let leaf = try problems(try certificates.client().certificate)
        #expect(leaf.count == 1 && leaf[0].contains("outside-ca.pem: is not the certificate of an authority"))
    }
}
