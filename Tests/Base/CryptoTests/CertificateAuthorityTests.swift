import Bytes
import Crypto
import Testing
import World

@Suite struct CertificateAuthorityTests {
    private let now = SystemTime().now()
    private let day: Duration = .seconds(86_400)

    private func made() throws -> (CertificateAuthority, Shell) {
        let authority = try CertificateAuthority.create(commonName: "Phones of example.com", days: 3650, at: now)
        let shell = try Shell()
        try shell.write("ca.pem", try authority.certificatePEM())
        return (authority, shell)
    }

    /// Returns the verdict of `openssl verify` on a certificate for this purpose.
    private func verdict(
        _ shell: Shell, _ certificate: Certificate, purpose: String, _ more: String = ""
    ) throws -> String {
        try shell.write("leaf.pem", try certificate.pem())
        let (status, output) = try shell.openssl(
            "verify -x509_strict -CAfile ca.pem -purpose \(purpose) \(more) leaf.pem")
        return status == 0 ? "OK" : output
    }

    @Test func authorityCertificateIsValid() throws {
        let (authority, shell) = try made()
        #expect(try verdict(shell, authority.certificate, purpose: "any") == "OK")
        let text = try shell.openssl("x509 -in ca.pem -noout -text").output
        #expect(text.contains("X509v3 Basic Constraints: critical\n                CA:TRUE, pathlen:0"))
        #expect(text.contains("X509v3 Key Usage: critical\n                Certificate Sign, CRL Sign"))
        #expect(text.contains("Issuer: CN = Phones of example.com"))
        #expect(text.contains("Public-Key: (256 bit)"))
        let again = try CertificateAuthority(
            certificatePEM: try authority.certificatePEM(), keyPEM: try authority.keyPEM())
        #expect(again.certificate == authority.certificate)
        #expect(authority.keyThumbprint == authority.key.publicKey.spkiThumbprint)
        let other = try CertificateAuthority.create(commonName: "Other", days: 1, at: now)
        #expect(throws: CryptoFailure.self) {
            try CertificateAuthority(certificatePEM: try authority.certificatePEM(), keyPEM: try other.keyPEM())
        }
    }

    @Test func serverCertificatesVerify() throws {
        let (authority, shell) = try made()
        let issued = try authority.issueServer(
            names: ["login.example.com", "127.0.0.1", "::1", "*.example.org"], days: 90, at: now)
        let certificate = issued.certificate
        #expect(try verdict(shell, certificate, purpose: "sslserver", "-verify_hostname login.example.com") == "OK")
        #expect(try verdict(shell, certificate, purpose: "sslserver", "-verify_ip 127.0.0.1") == "OK")
        #expect(try verdict(shell, certificate, purpose: "sslserver", "-verify_ip ::1") == "OK")
        #expect(
            try verdict(shell, certificate, purpose: "sslserver", "-verify_hostname evil.com")
                .contains("hostname mismatch"))
        #expect(try verdict(shell, certificate, purpose: "sslclient").contains("certificate purpose"))
        #expect(certificate.dnsNames == ["login.example.com", "*.example.org"])
        #expect(certificate.uris == [])
        try shell.write("key.pem", try issued.keyPEM().reveal())
        let theirs = try shell.openssl("pkey -in key.pem -pubout -outform DER -out spki.der", making: "spki.der")
        #expect(theirs.status == 0)
        #expect(try shell.read("spki.der") == issued.key.publicKey.spki)
        #expect(try certificate.publicKey() == issued.key.publicKey)
    }

    @Test func clientCertificatesVerify() throws {
        let (authority, shell) = try made()
        let key = try P256PrivateKey.generate().publicKey
        let uri = "twoefay:device:0123456789abcdef0123456789abcdef"
        let certificate = try authority.issueClient(uri: uri, key: key, days: 90, at: now)
        #expect(try verdict(shell, certificate, purpose: "sslclient") == "OK")
        #expect(try verdict(shell, certificate, purpose: "sslserver").contains("certificate purpose"))
        #expect(certificate.uris == [uri])
        #expect(certificate.spkiThumbprint == key.spkiThumbprint)
        let text = try shell.openssl("x509 -in leaf.pem -noout -text").output
        #expect(text.contains("URI:\(uri)\n"))
        #expect(text.contains("TLS Web Client Authentication\n"))
        #expect(text.contains("Version: 3 (0x2)"))
        #expect(text.contains("CA:FALSE"))
        let serial = try shell.openssl("x509 -in leaf.pem -noout -serial").output
        #expect(serial == "serial=\(certificate.serial.uppercased())\n")
        #expect(certificate.serial.utf8.count >= 28)
    }

    @Test func certificateHasTheRequestedDates() throws {
        let (authority, shell) = try made()
        let moment = try #require(Timestamp(rfc3339: "2026-02-28T23:58:00.999Z"))
        let certificate = try authority.issueClient(uri: "x:y", days: 1, at: moment).certificate
        #expect(certificate.notBefore.rfc3339 == "2026-02-28T23:53:00.000Z")
        #expect(certificate.notAfter.rfc3339 == "2026-03-01T23:58:00.000Z")
        try shell.write("leaf.pem", try certificate.pem())
        let dates = try shell.openssl("x509 -in leaf.pem -noout -dates -dateopt iso_8601").output
        #expect(dates == "notBefore=2026-02-28 23:53:00Z\nnotAfter=2026-03-01 23:58:00Z\n")
        // From 2050 on, the encoded year has four digits.
        for text in ["2049-12-31T23:59:59.000Z", "2050-01-01T00:00:00.000Z", "2100-02-28T12:00:00.000Z"] {
            let end = try #require(Timestamp(rfc3339: text))
            let long = try authority.issue(
                CertificateRequest(key: authority.key.publicKey, notBefore: moment, notAfter: end))
            #expect(long.notAfter == end)
        }
    }

    @Test func serialNumbersAreUnique() throws {
        let (authority, _) = try made()
        let key = authority.key.publicKey
        let serials = try (0..<50).map { _ in try authority.issueClient(uri: "x:y", key: key, days: 1, at: now).serial }
        #expect(Set(serials).count == 50)
    }

    @Test("openssl refuses each kind of invalid certificate that tests create")
    func invalidCertificatesAreRefusedByOpenSSL() throws {
        let (authority, shell) = try made()
        let good = CertificateRequest(
            key: try P256PrivateKey.generate().publicKey, commonName: "c", names: [.uri("twoefay:website:shop")],
            usages: [.clientAuth], notBefore: now - day, notAfter: now + day)
        #expect(try verdict(shell, try authority.issue(good), purpose: "sslclient") == "OK")

        var expired = good
        expired.notBefore = now - .seconds(864_000)
        expired.notAfter = now - day
        #expect(try verdict(shell, try authority.issue(expired), purpose: "sslclient").contains("has expired"))

        var early = good
        early.notBefore = now + .seconds(3600)
        #expect(try verdict(shell, try authority.issue(early), purpose: "sslclient").contains("not yet valid"))

        var server = good
        server.usages = [.serverAuth]
        #expect(try verdict(shell, try authority.issue(server), purpose: "sslclient").contains("certificate purpose"))

        var nameless = good
        nameless.names = []
        #expect(try authority.issue(nameless).uris == [])

        var twice = good
        twice.names = [.uri("twoefay:website:shop"), .uri("twoefay:website:bank"), .dns("shop.example.com")]
        #expect(try authority.issue(twice).uris == ["twoefay:website:shop", "twoefay:website:bank"])
    }

    @Test("With a long or missing common name, the subject is empty and the names are critical")
    func longOrMissingCommonNameLeavesTheSubjectEmpty() throws {
        let (authority, shell) = try made()
        let uri = "twoefay:website:" + String(repeating: "x", count: 100)
        let certificate = try authority.issueClient(uri: uri, days: 1, at: now).certificate
        #expect(certificate.uris == [uri])
        #expect(try verdict(shell, certificate, purpose: "sslclient") == "OK")
        #expect(try shell.openssl("x509 -in leaf.pem -noout -text").output.contains("Alternative Name: critical"))
    }

    @Test func crlRevokesACertificate() throws {
        let (authority, shell) = try made()
        let lost = try authority.issueClient(uri: "twoefay:website:lost", days: 1, at: now).certificate
        let kept = try authority.issueClient(uri: "twoefay:website:kept", days: 1, at: now).certificate
        let check = "-crl_check -CRLfile crl.pem"
        try shell.write("crl.pem", try authority.makeCRL(revoked: [], days: 7, at: now))
        #expect(try verdict(shell, lost, purpose: "sslclient", check) == "OK")
        try shell.write("crl.pem", try authority.makeCRL(revoked: [(lost.serial, now)], days: 7, at: now))
        #expect(try verdict(shell, lost, purpose: "sslclient", check).contains("certificate revoked"))
        #expect(try verdict(shell, kept, purpose: "sslclient", check) == "OK")
        #expect(try shell.openssl("crl -in crl.pem -noout -verify -CAfile ca.pem").output.contains("verify OK"))
        #expect(try shell.openssl("crl -in crl.pem -noout -crlnumber").output.hasPrefix("crlNumber=0x"))
        let old = try authority.makeCRL(revoked: [], days: 1, at: now - .seconds(864_000))
        try shell.write("crl.pem", old)
        #expect(try verdict(shell, kept, purpose: "sslclient", check).contains("CRL has expired"))
        #expect(throws: CryptoFailure.self) { try authority.makeCRL(revoked: [("xyz", now)], days: 1, at: now) }
    }

    @Test func revocationListHasReasonsForHoldsOnly() throws {
        let (authority, shell) = try made()
        let list = try authority.revocationList(
            [
                RevokedCertificate(serial: "0a01", at: now),
                RevokedCertificate(serial: "0a02", at: now, isOnHold: true),
            ], life: day, at: now)
        try shell.write("crl.der", list)
        let text = try shell.openssl("crl -inform DER -in crl.der -noout -text").output
        let entries = text.split(separator: "Serial Number: ").dropFirst().map { String($0) }
        #expect(entries.count == 2)
        #expect(entries[0].hasPrefix("0A01") && !entries[0].contains("Reason"))
        #expect(entries[1].hasPrefix("0A02") && entries[1].contains("Certificate Hold"))
    }

    @Test func clientCertificateNamesTheRevocationListOfItsAuthority() throws {
        let (made, shell) = try made()
        let key = try P256PrivateKey.generate().publicKey
        for url in [nil, "https://login.example.com:8080/crl"] {
            let authority = try CertificateAuthority(
                certificate: made.certificate, key: made.key, revocationListURL: url)
            let certificate = try authority.issueClient(uri: "twoefay:device:1", key: key, days: 1, at: now)
            #expect(try verdict(shell, certificate, purpose: "sslclient") == "OK")
            let text = try shell.openssl("x509 -in leaf.pem -noout -ext crlDistributionPoints").output
            #expect(text.contains("Full Name:\n") == (url != nil))
            if let url { #expect(text.contains("URI:\(url)\n")) }
        }
    }

    @Test func certificateOfAnotherAuthorityIsRefused() throws {
        let (authority, shell) = try made()
        // The name is the same, so only the key distinguishes the authorities.
        let other = try CertificateAuthority.create(commonName: "Phones of example.com", days: 3650, at: now)
        let key = try P256PrivateKey.generate().publicKey
        let own = try authority.issueClient(uri: "twoefay:website:shop", key: key, days: 1, at: now)
        let foreign = try other.issueClient(uri: "twoefay:website:shop", key: key, days: 1, at: now)
        #expect(try verdict(shell, own, purpose: "sslclient") == "OK")
        #expect(try verdict(shell, foreign, purpose: "sslclient").contains("unable to get local issuer certificate"))
    }

    @Test func certificateOfAnAuthorityThatOpenSSLCreatedIsValid() throws {
        let shell = try Shell()
        let made = try shell.openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out ca.pem -days 10 "
                + "-subj '/C=DE/O=Example GmbH/CN=Our own CA' -addext keyUsage=critical,keyCertSign,cRLSign",
            making: "key.pem", "ca.pem")
        #expect(made.status == 0)
        let authority = try CertificateAuthority(
            certificatePEM: try shell.read("ca.pem"), keyPEM: Secret(try shell.read("key.pem")))
        let issued = try authority.issueClient(uri: "twoefay:website:shop", days: 1, at: now)
        #expect(try verdict(shell, issued.certificate, purpose: "sslclient") == "OK")
    }
}
