import Crypto
import Testing
import World

@Suite struct CertificateRevocationListTests {
    private let now = Timestamp(seconds: 1_795_000_000)

    @Test func datesAndIssuerAreThoseThatOpenSSLPrints() throws {
        let authority = try CertificateAuthority.create(commonName: "websites", days: 90, at: now)
        let shell = try Shell()
        try shell.write("crl.pem", try authority.makeCRL(revoked: [], days: 7, at: now))
        let list = try #require(try CertificateRevocationList.all(pem: shell.read("crl.pem")).first)
        let printed = try shell.openssl("crl -in crl.pem -noout -lastupdate -nextupdate -dateopt iso_8601").output
        let dates = printed.split(separator: "\n").map { $0.split(separator: "=").last.map(String.init) ?? "" }
        let next = try #require(list.nextUpdate)
        #expect(dates == [list.thisUpdate, next].map { Self.openSSLText($0) }, "\(printed)")
        #expect(list.issuer == authority.certificate.subject)
    }

    /// The time as `-dateopt iso_8601` prints it: without a T, and without milliseconds.
    private static func openSSLText(_ time: Timestamp) -> String {
        time.rfc3339.replacing("T", with: " ").replacing(".000Z", with: "Z")
    }

    @Test func onlyTheIssuerHasSignedIt() throws {
        let authority = try CertificateAuthority.create(commonName: "websites", days: 90, at: now)
        let namesake = try CertificateAuthority.create(commonName: "websites", days: 90, at: now)
        let other = try CertificateAuthority.create(commonName: "phones", days: 90, at: now)
        let list = try #require(
            try CertificateRevocationList.all(pem: authority.makeCRL(revoked: [], days: 7, at: now)).first)
        #expect(list.isSigned(by: authority.certificate))
        #expect(!list.isSigned(by: namesake.certificate))
        #expect(!list.isSigned(by: other.certificate))
    }

    @Test func certificatesAreNoLists() throws {
        let authority = try CertificateAuthority.create(commonName: "websites", days: 90, at: now)
        #expect(try CertificateRevocationList.all(pem: authority.certificatePEM()).isEmpty)
        #expect(throws: CryptoFailure.self) { try CertificateRevocationList(der: authority.certificate.der) }
    }

    // MARK: The name of a certificate

    @Test(arguments: [
        (["login.example.com"], "login.example.com", true), (["login.example.com"], "LOGIN.example.com", true),
        (["login.example.com"], "example.com", false), (["*.example.com"], "login.example.com", true),
        (["*.example.com"], "a.login.example.com", false), (["127.0.0.1"], "127.0.0.1", true),
        (["127.0.0.1"], "127.0.0.2", false), (["::1"], "::1", true), (["::1"], "0:0:0:0:0:0:0:1", true),
        (["localhost", "127.0.0.1"], "127.0.0.1", true), (["localhost"], "", false),
    ])
    func certificateIsValidForItsNames(names: [String], host: String, isValid: Bool) throws {
        let authority = try CertificateAuthority.create(commonName: "server", days: 90, at: now)
        let issued = try authority.issueServer(names: names, days: 90, at: now)
        #expect(issued.certificate.isValid(forHost: host) == isValid)
    }
}
