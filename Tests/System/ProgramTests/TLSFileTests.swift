import Bytes
import Crypto
import JSON
import TestSupport
import Testing
import World

/// Files under `tls` with which some or all handshakes would fail: each of them is refused before
/// the relay starts.
@Suite("twoefayd --check", .timeLimit(.minutes(15)), .mayBlock) struct TLSFileTests {
    private func check(_ installed: Installed, _ more: String...) async throws -> Child.Ended {
        try await Child.run(
            try BuiltProgram.twoefayd.path, ["--config", installed.settings, "--check"] + more)
    }

    private func change(_ installed: Installed, _ key: String, to value: String) throws {
        var settings = try text(installed.settings)
        try settings.set(key, to: value)
        try TextFile.write(settings, to: installed.settings)
    }

    private func authority(_ installed: Installed, _ name: String) throws -> CertificateAuthority {
        try CertificateAuthority(
            certificatePEM: try TextFile.bytes(installed.directory("relay/\(name).pem")),
            keyPEM: Secret(try TextFile.bytes(installed.directory("relay/\(name).key"))))
    }

    /// Writes a list of the websites' authority as `tls.revoked`.
    ///
    /// - Parameter age: the days since the list was made.
    private func revoke(
        _ installed: Installed, by name: String = "website-ca", days: Int, age: Int = 0
    ) throws {
        let made = SystemTime().now() - .seconds(age * 86_400)
        let list = try authority(installed, name).makeCRL(revoked: [], days: days, at: made)
        try TextFile.write(list, to: installed.directory("relay/revoked.pem"))
        try change(installed, "tls.revoked", to: "revoked.pem")
    }

    @Test(arguments: ["https://login.example.com:8080", "https://192.0.2.1:8080", "https://[::2]:8080"])
    func serverCertificateForAnotherNameIsRefused(origin: String) async throws {
        let installed = try await Installed()
        try change(installed, "origin", to: origin)
        let checked = try await check(installed)
        #expect(checked.status == 1)
        let host = origin.dropFirst("https://".count).dropLast(":8080".count).filter { !"[]".contains($0) }
        #expect(
            checked.errors.contains("server.pem: is not for \(host), the host of the origin, but for localhost"),
            "\(checked.errors)")
        // The relay itself does not start either.
        let started = try await BuiltProgram.twoefayd("--config", installed.settings)
        #expect(started.status == 1 && started.errors.contains("the host of the origin"), "\(started.errors)")
    }

    @Test(arguments: ["https://localhost:8080", "https://127.0.0.1:8080", "https://[::1]:8080"])
    func serverCertificateForTheOriginIsAccepted(origin: String) async throws {
        let installed = try await Installed()
        try change(installed, "origin", to: origin)
        let checked = try await check(installed)
        #expect(checked.status == 0, "\(checked.errors)")
    }

    @Test func fileWithoutARevocationListIsRefused() async throws {
        let installed = try await Installed()
        try change(installed, "tls.revoked", to: "ca.pem")
        let checked = try await check(installed)
        #expect(checked.status == 1)
        #expect(checked.errors.contains("relay/ca.pem: holds no revocation list"), "\(checked.errors)")
    }

    @Test func fileWithoutAStatementOfPinsIsRefused() async throws {
        let installed = try await Installed()
        try change(installed, "tls.pins", to: "ca.pem")
        let checked = try await check(installed)
        #expect(checked.status == 1)
        #expect(
            checked.errors.contains("relay/ca.pem: holds no statement of 'twoefay server pins': "), "\(checked.errors)")
    }

    @Test func authorityOfPhonesAndWebsitesIsRefused() async throws {
        let installed = try await Installed()
        try change(installed, "tls.websites", to: "device-ca.pem")
        let checked = try await check(installed)
        #expect(checked.status == 1)
        #expect(
            checked.errors.contains("Websites and phones must not share one"), "\(checked.errors)")
    }

    @Test func expiredRevocationListIsRefused() async throws {
        let installed = try await Installed()
        try revoke(installed, days: 7, age: 8)
        let checked = try await check(installed)
        #expect(checked.status == 1)
        #expect(checked.errors.contains("relay/revoked.pem: expired at "), "\(checked.errors)")
    }

    @Test func listOfAnotherAuthorityIsRefused() async throws {
        let installed = try await Installed()
        try revoke(installed, by: "ca", days: 7)
        let checked = try await check(installed)
        #expect(checked.status == 1)
        #expect(checked.errors.contains("relay/revoked.pem: is not signed by an authority in"), "\(checked.errors)")
    }

    @Test func revocationListThatEndsSoonIsNamed() async throws {
        let installed = try await Installed("--listen", "127.0.0.1:1", "--host", "127.0.0.1")
        try revoke(installed, days: 60, age: 50)
        let status = try await BuiltProgram.twoefay("--config", installed.settings, "status")
        let checked = try await check(installed)
        for output in [status.output, checked.output] {
            let soon = output.split(separator: "\n").filter { $0.hasPrefix("Warning: ") }
            #expect(soon.count == 1 && soon[0].contains("revoked.pem: expires in 9 days"), "\(output)")
        }
        let json = try await check(installed, "--json").json
        let settings = json["certificates"]?.array?.compactMap { $0.object?["setting"]?.string }
        #expect(settings?.last == "tls.revoked")
        // A list that is made anew every week is not always about to end.
        try revoke(installed, days: 7)
        #expect(try await !check(installed).output.contains("Warning: "))
    }

    /// Every caller refuses these, although each has the host of the origin, and ends with the
    /// authority's certificate.
    @Test(arguments: ["another authority", "for clients", "expired copy"])
    func serverCertificateThatCallersRefuseIsRefused(fault: String) async throws {
        let installed = try await Installed()
        let now = SystemTime().now()
        let ca = try authority(installed, "ca")
        let key = try P256PrivateKey.generate()
        var request = CertificateRequest(
            key: key.publicKey, commonName: "localhost", names: [.dns("localhost")], usages: [.serverAuth],
            notBefore: now - .seconds(60), notAfter: now + .seconds(30 * 86_400))
        var issuer = ca
        var chain = [ca.certificate]
        switch fault {
        case "another authority": issuer = try CertificateAuthority.create(commonName: "other", days: 9, at: now)
        case "for clients": request.usages = [.clientAuth]
        default:
            // The former certificate of the authority, with the same key and name.
            let keyPEM = Secret(try TextFile.bytes(installed.directory("relay/ca.key")))
            let former = CertificateRequest(
                key: try P256PrivateKey(pem: keyPEM).publicKey, commonName: "former",
                notBefore: now - .seconds(9 * 86_400),
                notAfter: now - .seconds(1 * 86_400), isAuthority: true)
            chain = [try ca.issue(former)]
        }
        let server = try issuer.issue(request)
        try TextFile.write(
            try ([server] + chain).flatMap { try $0.pem() }, to: installed.directory("relay/server.pem"))
        try TextFile.write(try key.pem().reveal(), to: installed.directory("relay/server.key"))
        let checked = try await check(installed)
        #expect(checked.status == 1)
        let expected = fault == "expired copy" ? "certificate 2 expired at" : "callers that trust"
        #expect(checked.errors.contains("server.pem: \(expected)"), "\(checked.errors)")
    }

    @Test func renewedServerCertificateIsAccepted() async throws {
        let installed = try await Installed()
        let ca = try authority(installed, "ca")
        let issued = try ca.issueServer(names: ["localhost"], days: 30, at: SystemTime().now())
        try TextFile.write(
            try issued.certificatePEM() + ca.certificatePEM(), to: installed.directory("relay/server.pem"))
        try TextFile.write(try issued.keyPEM().reveal(), to: installed.directory("relay/server.key"))
        let checked = try await check(installed)
        #expect(checked.status == 0, "\(checked.errors)")
    }

    /// Each of these files has a second certificate, which has expired.
    @Test(arguments: ["tls.websites", "mail.ca", "push.apns.ca", "webhooks.ca"])
    func everyCertificateOfAFileIsJudged(key: String) async throws {
        let installed = try await Installed()
        let now = SystemTime().now()
        let good = try TextFile.bytes(installed.directory("relay/website-ca.pem"))
        let former = try CertificateAuthority.create(commonName: "former", days: 9, at: now - .seconds(10 * 86_400))
        try TextFile.write(good + former.certificatePEM(), to: installed.directory("relay/both.pem"))
        try change(installed, key, to: "both.pem")
        if key == "mail.ca" {
            try change(installed, "mail.url", to: "smtps://mail.example.com")
            try change(installed, "mail.from", to: "twoefay@example.com")
        }
        if key == "push.apns.ca" { try setPushKey(installed) }
        let checked = try await check(installed)
        #expect(checked.status == 1)
        #expect(checked.errors.contains("relay/both.pem: certificate 2 expired at"), "\(checked.errors)")
        // One that ends soon is watched, under the name of the setting.
        let soon = try CertificateAuthority.create(commonName: "soon", days: 9, at: now)
        try TextFile.write(good + soon.certificatePEM(), to: installed.directory("relay/both.pem"))
        let warned = try await check(installed)
        #expect(warned.output.contains("relay/both.pem: certificate 2 expires in"), "\(warned.output)\(warned.errors)")
    }

    private func setPushKey(_ installed: Installed) throws {
        let key = try P256PrivateKey.generate()
        try TextFile.write(try key.pem().reveal(), to: installed.directory("relay/AuthKey.p8"))
        for (name, value) in [
            ("topic", "com.example.app"), ("key", "AuthKey.p8"), ("key_id", "ABCDE12345"), ("team_id", "ABCDE12345"),
        ] { try change(installed, "push.apns.\(name)", to: value) }
    }

    @Test func unusablePushFilesAreRefused() async throws {
        let installed = try await Installed()
        try setPushKey(installed)
        try change(installed, "push.apns.ca", to: "twoefay.yaml")
        let text = try await check(installed)
        #expect(text.status == 1 && text.errors.contains("twoefay.yaml: holds no certificate"), "\(text.errors)")
        let other = try await Installed()
        try change(other, "push.apns.topic", to: "com.example.app")
        try change(other, "push.apns.certificate", to: "server.pem")
        try change(other, "push.apns.certificate_key", to: "website-ca.key")
        let mismatch = try await check(other)
        #expect(mismatch.status == 1)
        #expect(mismatch.errors.contains("website-ca.key: cannot be used with"), "\(mismatch.errors)")
    }

    /// OpenSSL would refuse every website of the second authority.
    @Test func listOfANamesakeIsRefused() async throws {
        let installed = try await Installed()
        try revoke(installed, days: 7)
        let old = try authority(installed, "website-ca")
        let now = SystemTime().now()
        let renewed = try CertificateAuthority.create(commonName: "Twoefay website authority", days: 90, at: now)
        #expect(renewed.certificate.subject == old.certificate.subject)
        let path = installed.directory("relay/website-ca.pem")
        try TextFile.write(try old.certificatePEM() + renewed.certificatePEM(), to: path)
        let checked = try await check(installed)
        #expect(checked.status == 1)
        #expect(
            checked.errors.contains("list of another authority with the name of certificate 2"), "\(checked.errors)")
        // An empty list of the second one is enough.
        let list = try TextFile.bytes(installed.directory("relay/revoked.pem"))
        try TextFile.write(
            try list + renewed.makeCRL(revoked: [], days: 7, at: now), to: installed.directory("relay/revoked.pem"))
        let both = try await check(installed)
        #expect(both.status == 0, "\(both.errors)")
    }

    /// What only a start uses is checked, too.
    @Test(arguments: [
        ("storage", "mariadb://twoefay@localhost", "needs one database"),
        ("storage", "postgres://x", "storage must begin with"),
        ("listen", "localhost:8080", "localhost is not an IP address"),
    ])
    func addressThatAStartRefusesIsRefused(key: String, value: String, message: String) async throws {
        let installed = try await Installed()
        try change(installed, key, to: value)
        let checked = try await check(installed)
        #expect(checked.errors.contains(message) && checked.errors.contains("twoefay.yaml:"), "\(checked.errors)")
        #expect(checked.status == 1, "\(checked.errors)")
    }

    @Test func faultsOfSettingsAndFilesAreReportedTogether() async throws {
        let installed = try await Installed()
        try change(installed, "tls.revoked", to: "ca.pem")
        _ = try await Child.run(
            "sh", ["-c", "echo 'loops: x' >> twoefay.yaml; rm device-ca.key"], in: installed.directory("relay"))
        let checked = try await check(installed)
        #expect(checked.status == 1)
        for part in [
            "loops must be a whole number", "relay/ca.pem: holds no revocation list", "device-ca.key: No such file",
        ] {
            #expect(checked.errors.contains(part), "\(part) is not in \(checked.errors)")
        }
    }

    /// Without an origin the name in the certificate cannot be judged.
    @Test func missingOriginIsOneFault() async throws {
        let installed = try await Installed()
        let settings = try text(installed.settings).split(separator: "\n", omittingEmptySubsequences: false)
        try TextFile.write(
            settings.filter { !$0.hasPrefix("origin:") }.joined(separator: "\n"), to: installed.settings)
        let checked = try await check(installed)
        #expect(checked.errors.contains("origin is missing"), "\(checked.errors)")
        #expect(!checked.errors.contains("the host of the origin"), "\(checked.errors)")
    }
}
