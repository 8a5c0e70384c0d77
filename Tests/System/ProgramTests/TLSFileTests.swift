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
