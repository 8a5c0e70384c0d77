import Bytes
import Crypto
import JSON
import TestSupport
import Testing
import World

@Suite("twoefay status", .timeLimit(.minutes(15)), .mayBlock) struct StatusTests {
    @Test func statusReportsAnUnreachableRelayAndTheStore() async throws {
        // Nothing listens on port 1.
        let installed = try await Installed("--listen", "127.0.0.1:1", "--host", "127.0.0.1")
        _ = try await BuiltProgram.twoefay(
            "--config", installed.settings, "website", "add", "shop", "--out", installed.directory.path)
        let status = try await BuiltProgram.twoefay("--config", installed.settings, "status")
        #expect(status.status == 5)
        #expect(status.output.contains("The relay at https://127.0.0.1:1 does not answer"))
        #expect(status.output.contains("1 active website and 0 running relays."))
        let result = try await BuiltProgram.twoefay("--config", installed.settings, "status", "--json")
        let json = try #require(try JSONReader.read(Array(result.output.utf8)).object)
        #expect(json["relay"]?.object?["state"]?.string == "silent")
        #expect(json["store"]?.object?["websites"]?.integer == 1)
        #expect(json["store"]?.object?["waiting"]?.array == [])
    }

    @Test func statusNamesExpiringCertificates() async throws {
        let installed = try await Installed("--listen", "127.0.0.1:1", "--host", "127.0.0.1")
        func file(_ name: String) throws -> [UInt8] { try TextFile.bytes(installed.directory("relay/\(name)")) }
        let authority = try CertificateAuthority(
            certificatePEM: try file("ca.pem"), keyPEM: Secret(try file("ca.key")))
        let issued = try authority.issueServer(names: ["127.0.0.1"], days: 10, at: SystemTime().now())
        try TextFile.write(
            try issued.certificatePEM() + authority.certificatePEM(), to: installed.directory("relay/server.pem"))
        try TextFile.write(try issued.keyPEM().reveal(), to: installed.directory("relay/server.key"))
        let (status, check) = (
            ["--config", installed.settings, "status"], ["--config", installed.settings, "--check"]
        )
        let lines = [
            try await Child.run(try BuiltProgram.twoefay.path, status).output,
            try await Child.run(try BuiltProgram.twoefayd.path, check).output,
        ]
        for output in lines {
            let soon = output.split(separator: "\n").filter { $0.hasPrefix("Warning: ") }
            #expect(soon.count == 1 && soon[0].contains("server.pem: expires in "), "\(output)")
        }
        let json = try JSONReader.read(
            Array(try await Child.run(try BuiltProgram.twoefayd.path, check + ["--json"]).output.utf8)
        ).object
        let certificates = try #require(json?["certificates"]?.array).compactMap(\.object)
        #expect(
            certificates.compactMap { $0["setting"]?.string } == [
                "tls.certificate", "tls.ca", "tls.websites", "tls.phones",
            ])
        #expect(try #require(certificates.first?["days"]?.integer) <= 10)
        #expect(json?["warnings"]?.array?.count == 1)
    }

    @Test func statusReportsAMissingStore() async throws {
        let installed = try await Installed("--listen", "127.0.0.1:1")
        _ = try await Child.run("sh", ["-c", "rm twoefay.db*"], in: installed.directory("relay"))
        let status = try await BuiltProgram.twoefay("--config", installed.settings, "status", "--json")
        #expect(status.status == 5)
        let json = try #require(try JSONReader.read(Array(status.output.utf8)).object)
        #expect(json["store"]?.object?["error"]?.object?["code"]?.string == "not_found")
    }
}
