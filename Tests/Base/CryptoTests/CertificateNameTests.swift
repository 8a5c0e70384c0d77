import Crypto
import Testing
import World

/// The name that a request asks for, and that a certificate has.
struct CertificateNameTests {
    private let key: P256PrivateKey
    private let name = CertificateName(uri: "twoefay:device:0123456789abcdef0123456789abcdef")
    private let now = Timestamp(seconds: 1_795_251_887)

    init() throws { key = try P256PrivateKey.generate() }

    @Test(arguments: [47, 64, 65, 80]) func requestAsksForItsName(length: Int) throws {
        let name = CertificateName(uri: "twoefay:" + String(repeating: "a", count: length - 8))
        let request = try SigningRequest(name, key: key)
        #expect(try SigningRequest(der: request.der).key == key.publicKey)
        #expect(name.isWhole(of: try SigningRequest(der: request.der)))
        #expect(!CertificateName(uri: name.uri + "b").isWhole(of: request))
    }

    @Test func requestWithoutTheExtensionNamesItBySubject() throws {
        #expect(name.isWhole(of: try SigningRequest(commonName: name.uri, key: key)))
        #expect(!name.isWhole(of: try SigningRequest(commonName: "phone", key: key)))
        // The subject has no room for a long one.
        let long = CertificateName(uri: name.uri + String(repeating: "a", count: 40))
        #expect(!long.isWhole(of: try SigningRequest(commonName: "", key: key)))
    }

    @Test func certificateHasItsNameOnly() throws {
        let authority = try CertificateAuthority.create(commonName: "any", days: 10, at: now)
        func certificate(_ commonName: String, _ names: [CertificateRequest.Name]) throws -> Certificate {
            try authority.issue(
                CertificateRequest(
                    key: key.publicKey, commonName: commonName, names: names, usages: [.clientAuth], notBefore: now,
                    notAfter: now + .seconds(86_400)))
        }
        #expect(name.isName(of: try certificate(name.uri, [.uri(name.uri)])))
        #expect(name.isName(of: try certificate("", [.uri(name.uri)])))
        let other = "twoefay:device:ffffffffffffffffffffffffffffffff"
        for wrong in [
            try certificate(name.uri, []), try certificate(name.uri, [.uri(other)]),
            try certificate(other, [.uri(name.uri)]), try certificate(name.uri, [.uri(name.uri), .uri(other)]),
            try certificate(name.uri, [.uri(name.uri), .dns("login.example.com")]),
            try certificate(name.uri, [.dns(name.uri)]),
        ] {
            #expect(!name.isName(of: wrong))
        }
    }
}
