import Bytes
import Crypto
import Testing
import World

@Suite struct CertificatePathTests {
    private let now = Timestamp(seconds: 1_800_000_000)

    private func request(
        _ name: String, key: P256PrivateKey, isAuthority: Bool = false, from: Duration = .seconds(-60),
        to: Duration = .seconds(60)
    ) -> CertificateRequest {
        CertificateRequest(
            key: key.publicKey, commonName: name, notBefore: now + from, notAfter: now + to, isAuthority: isAuthority)
    }

    private func faultOf(
        _ path: [Certificate], roots: [Certificate], at time: Timestamp?, leniency: CertificatePath.Leniency = .none
    ) -> CertificatePath.Fault? {
        do {
            _ = try CertificatePath.verify(path, roots: roots, at: time, leniency: leniency)
            return nil
        } catch {
            return error
        }
    }

    @Test func pathFromLeafToRootIsVerified() throws {
        let authority = try CertificateAuthority.create(commonName: "root", days: 1, at: now)
        let other = try CertificateAuthority.create(commonName: "other", days: 1, at: now)
        let leaf = try authority.issue(request("leaf", key: try P256PrivateKey.generate()))
        for presented in [[leaf], [leaf, authority.certificate]] {
            let verified = try CertificatePath.verify(
                presented, roots: [other.certificate, authority.certificate], at: now)
            #expect(verified.path == [leaf])
            #expect(verified.root == authority.certificate)
        }
    }

    @Test func everyCertificateMustBeOnThePath() throws {
        let authority = try CertificateAuthority.create(commonName: "root", days: 1, at: now)
        let first = try authority.issue(request("first", key: try P256PrivateKey.generate()))
        let second = try authority.issue(request("second", key: try P256PrivateKey.generate()))
        #expect(faultOf([first, second], roots: [authority.certificate], at: now) == .path)
        #expect(faultOf([first, authority.certificate, second], roots: [authority.certificate], at: now) == .path)
        #expect(faultOf([], roots: [authority.certificate], at: now) == .length)
        #expect(faultOf([Certificate](repeating: first, count: 11), roots: [authority.certificate], at: now) == .length)
    }

    @Test func rootMustBeTrusted() throws {
        let authority = try CertificateAuthority.create(commonName: "root", days: 1, at: now)
        let sameName = try CertificateAuthority.create(commonName: "root", days: 1, at: now)
        let leaf = try authority.issue(request("leaf", key: try P256PrivateKey.generate()))
        #expect(faultOf([leaf, authority.certificate], roots: [], at: now) == .root)
        #expect(faultOf([leaf], roots: [sameName.certificate], at: now) == .root)
        #expect(faultOf([authority.certificate], roots: [authority.certificate], at: now) == .path)
    }

    @Test func validityIsThatOfTheGivenTime() throws {
        let authority = try CertificateAuthority.create(commonName: "root", days: 1, at: now)
        let leaf = try authority.issue(request("leaf", key: try P256PrivateKey.generate()))
        let roots = [authority.certificate]
        for (offset, fault) in [(-61, CertificatePath.Fault.validity), (-60, nil), (59, nil), (61, .validity)] {
            #expect(faultOf([leaf], roots: roots, at: now + .seconds(offset)) == fault)
        }
        #expect(faultOf([leaf], roots: roots, at: nil) == nil)
    }

    @Test func issuerMustBeMarkedUnlessLeniencyIsAskedFor() throws {
        // Without a maximum length of the path, which our own authorities have.
        let shell = try Shell()
        try shell.openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout r.key -out r.pem -subj /CN=root",
            making: "r.key", "r.pem")
        let authority = try CertificateAuthority(
            certificatePEM: try shell.read("r.pem"), keyPEM: Secret(try shell.read("r.key")))
        let key = try P256PrivateKey.generate()
        let unmarked = try authority.issue(request("unmarked", key: key))
        try shell.write("ca.pem", try unmarked.pem())
        try shell.write("ca.key", try key.pem().reveal())
        try shell.openssl(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout leaf.key -out leaf.csr -subj /CN=leaf",
            making: "leaf.key", "leaf.csr")
        let made = try shell.openssl(
            "x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -set_serial 5 -days 36500 -out leaf.pem",
            making: "leaf.pem")
        #expect(made.status == 0, "\(made.output)")
        let path = [try Certificate(pem: try shell.read("leaf.pem")), unmarked]
        #expect(faultOf(path, roots: [authority.certificate], at: nil) == .path)
        let lenient = CertificatePath.Leniency(acceptsUnmarkedIssuers: true)
        #expect(faultOf(path, roots: [authority.certificate], at: nil, leniency: lenient) == nil)
        // Leniency is about the marks alone.
        let other = try CertificateAuthority.create(commonName: "root", days: 1, at: now)
        #expect(faultOf(path, roots: [other.certificate], at: nil, leniency: lenient) != nil)
    }

    @Test func certificateWithItsOwnIssuerIsSelfIssued() throws {
        let authority = try CertificateAuthority.create(commonName: "root", days: 1, at: now)
        let leaf = try authority.issue(request("leaf", key: try P256PrivateKey.generate()))
        #expect(authority.certificate.isSelfIssued)
        #expect(!leaf.isSelfIssued)
        #expect(leaf.issuer == authority.certificate.subject)
    }

    @Test func extensionsAreFoundByIdentifier() throws {
        let authority = try CertificateAuthority.create(commonName: "root", days: 1, at: now)
        // Basic constraints: cA TRUE, path length 0.
        #expect(
            try authority.certificate.extensions("2.5.29.19") == [[0x30, 0x06, 0x01, 0x01, 0xff, 0x02, 0x01, 0x00]])
        #expect(try authority.certificate.extensions("1.2.3.4") == [])
        #expect(throws: CryptoFailure.self) { try authority.certificate.extensions("no identifier") }
    }
}
