import Bytes
import Crypto
import Testing
import World

@Suite struct CertificateTests {
    private let now = SystemTime().now()

    @Test func certificatesOfOtherIssuersAreParsed() throws {
        let shell = try Shell()
        try shell.openssl(
            "req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -days 10 -subj /CN=x -set_serial 0x1234 "
                + "-addext 'subjectAltName=URI:urn:a,email:a@example.com,DNS:example.com,URI:urn:b,IP:10.0.0.1'",
            making: "k.pem", "c.pem")
        let pem = try shell.read("c.pem")
        let certificate = try Certificate(pem: pem)
        #expect(certificate.uris == ["urn:a", "urn:b"])
        #expect(certificate.dnsNames == ["example.com"])
        #expect(certificate.serial == "1234")
        #expect(certificate.notAfter - certificate.notBefore == .seconds(864_000))
        #expect(certificate.notBefore <= SystemTime().now() && certificate.notBefore >= now - .seconds(1))
        try shell.openssl(
            "x509 -in c.pem -noout -pubkey -out p.pem && openssl pkey -pubin -in p.pem -outform DER -out p.der",
            making: "p.pem", "p.der")
        #expect(certificate.spkiThumbprint == SHA256.hash(try shell.read("p.der")))
        #expect(throws: CryptoFailure.self) { try certificate.publicKey() }
        #expect(throws: CryptoFailure.self) { try P256PrivateKey(pem: Secret(try shell.read("k.pem"))) }
        #expect(try certificate.pem() == pem)
    }

    @Test func unencryptedPrivateKeyFormsAreRead() throws {
        let shell = try Shell()
        try shell.openssl("ecparam -name prime256v1 -genkey -out sec1.pem", making: "sec1.pem")
        try shell.openssl("pkcs8 -topk8 -nocrypt -in sec1.pem -out pkcs8.pem", making: "pkcs8.pem")
        try shell.openssl("pkcs8 -topk8 -passout pass:x -in sec1.pem -out locked.pem", making: "locked.pem")
        try shell.openssl("ecparam -name secp384r1 -genkey -noout -out other.pem", making: "other.pem")
        let key = try P256PrivateKey(pem: Secret(try shell.read("sec1.pem")))
        #expect(try P256PrivateKey(pem: Secret(try shell.read("pkcs8.pem"))).publicKey == key.publicKey)
        #expect(try key.pem().reveal() == shell.read("pkcs8.pem"))
        #expect(throws: CryptoFailure.self) { try P256PrivateKey(pem: Secret(try shell.read("other.pem"))) }
        #expect(throws: CryptoFailure.self) { try P256PrivateKey(pem: Secret(try shell.read("locked.pem"))) }
        #expect(throws: CryptoFailure.self) { try P256PrivateKey(pem: Secret([])) }
    }

    @Test func pemBundleYieldsItsCertificates() throws {
        let first = try CertificateAuthority.create(commonName: "1", days: 1, at: now)
        let second = try CertificateAuthority.create(commonName: "2", days: 1, at: now)
        let bundle =
            Array("# roots\n".utf8) + (try first.certificatePEM()) + (try second.keyPEM().reveal())
            + (try second.certificatePEM())
        #expect(try Certificate.all(pem: bundle) == [first.certificate, second.certificate])
        #expect(try Certificate(pem: bundle) == first.certificate)
        #expect(try Certificate.all(pem: []) == [])
        #expect(throws: CryptoFailure.self) { try Certificate(pem: []) }
        #expect(throws: CryptoFailure.self) { try Certificate(pem: try first.keyPEM().reveal()) }
        #expect(throws: CryptoFailure.self) { try Certificate.all(pem: Array(bundle.prefix(200))) }
    }

    @Test("Changed, truncated and extended certificates are parsed or refused without a crash")
    func mutatedCertificatesAreParsedOrRefused() throws {
        let authority = try CertificateAuthority.create(commonName: "1", days: 1, at: now)
        let der = try authority.issueClient(uri: "twoefay:website:x", days: 1, at: now).certificate.der
        var refused = 0
        for at in der.indices {
            for change: UInt8 in [0x01, 0x80, 0xff] {
                var changed = der
                changed[at] ^= change
                do {
                    let certificate = try Certificate(der: changed)
                    _ = certificate.uris
                } catch {
                    refused += 1
                }
            }
            #expect(throws: CryptoFailure.self) { try Certificate(der: Array(der[..<at])) }
        }
        #expect(refused > 100)
        #expect(throws: CryptoFailure.self) { try Certificate(der: der + [0]) }
    }

    @Test("A name is not cut at a NUL") func nameWithNULIsKeptWhole() throws {
        let authority = try CertificateAuthority.create(commonName: "1", days: 1, at: now)
        let certificate = try authority.issueClient(uri: "twoefay:website:a\u{0}b", days: 1, at: now).certificate
        #expect(certificate.uris == ["twoefay:website:a\u{0}b"])
    }
}
