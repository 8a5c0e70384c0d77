import Bytes
import Crypto
import Relay
import TestSupport
import Testing
import World

@testable import Storage

/// Connections with `?ssl_ca=`: encrypted and to the right server, or refused.
@Suite(.mayBlock) struct EncryptedConnectionTests {
    private static let known = try? CertificateAuthority.create(commonName: "known", days: 2, at: SystemTime().now())
    private static let stranger = try? CertificateAuthority.create(
        commonName: "stranger", days: 2, at: SystemTime().now())

    private static let server = Result {
        try MariaDBServer { directory in
            let authority = try #require(known)
            let issued = try authority.issueServer(
                names: ["localhost"], days: 2, at: SystemTime().now())
            try put(issued.certificatePEM(), in: "\(directory)/server.pem")
            try put(issued.keyPEM().reveal(), in: "\(directory)/server.key")
            return ["--ssl-cert=\(directory)/server.pem", "--ssl-key=\(directory)/server.key"]
        }
    }

    private static func put(_ bytes: [UInt8], in path: String) throws {
        try write(String(decoding: bytes, as: UTF8.self), to: path)
    }

    private func url(_ authority: CertificateAuthority?, in directory: TemporaryDirectory) throws -> StorageURL {
        let server = try Self.server.get()
        let path = directory("ca.pem")
        try Self.put(try #require(authority).certificatePEM(), in: path)
        return try StorageURL(
            "mariadb://root@localhost:\(server.port)/\(try server.freshDatabase())?ssl_ca=\(path)")
    }

    private static let cipher = Statement(
        "SELECT variable_value AS cipher FROM information_schema.session_status WHERE variable_name = 'Ssl_cipher'")

    @Test func mariadbConnectionIsEncrypted() async throws {
        let directory = try TemporaryDirectory()
        let store = try TestDatabase(url: url(Self.known, in: directory), migrations: TestSchema.all).open()
        defer { store.close() }
        let rows = try await store.run(Script("test.cipher", reads: [Self.cipher()]))
        #expect(try !rows.row(0).text("cipher").isEmpty)
        _ = try await store.run(TestScript.counter(1))
        #expect(try await store.run(TestScript.raise(1)).row(1).integer("n") == 1)
    }

    @Test func serverOfAnotherAuthorityIsRefused() throws {
        let directory = try TemporaryDirectory()
        let url = try url(Self.stranger, in: directory)
        #expect(throws: StoreFailure.self) { try TestDatabase(url: url, migrations: TestSchema.all).open() }
        // MariaDB's client leaves OpenSSL errors in the error queue of this thread. They must not make a later call
        // fail.
        _ = try Certificate(pem: #require(Self.stranger).certificatePEM())
    }

    @Test func serverWithoutTLSIsRefused() throws {
        let directory = try TemporaryDirectory()
        guard case .mariadb(var server) = try url(Self.known, in: directory) else { return }
        let plain = try MariaDBServer.shared()
        server.hosts[0].port = plain.port
        server.database = try plain.freshDatabase()
        #expect(throws: StoreFailure.self) {
            try TestDatabase(url: .mariadb(server), migrations: TestSchema.all).open()
        }
    }

    @Test func serverWithAnotherNameIsRefused() throws {
        let directory = try TemporaryDirectory()
        guard case .mariadb(var server) = try url(Self.known, in: directory) else { return }
        server.hosts[0].name = "127.0.0.1"
        let failure = #expect(throws: StoreFailure.self) {
            try TestDatabase(url: .mariadb(server), migrations: TestSchema.all).open()
        }
        guard case .unavailable(let message)? = failure else {
            Issue.record("\(String(describing: failure)) is not .unavailable")
            return
        }
        #expect(message.contains("MariaDB 2026"))
    }
}
