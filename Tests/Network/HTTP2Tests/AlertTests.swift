import Bytes
import Crypto
import HTTP
import TLS
import TestSupport
import Testing

@testable import HTTP2

/// The alert that a client reads when its handshake fails.
@Suite(.mayBlock) struct AlertTests {
    /// A client whose certificate is not accepted can read why.
    @Test(arguments: ["--http1.1", "--http2"], ["1.2", "1.3"]) func refusedCertificateIsSaidInAnAlert(
        version: String, tls: String
    ) async throws {
        let stranger = try TestCertificates().client()
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        try TextFile.write(try stranger.certificatePEM(), to: directory("client.pem"))
        try TextFile.write(try stranger.keyPEM().reveal(), to: directory("client.key"))
        // The clock stands still, so the server waits however long a client takes to read.
        try await TestServer.withHTTP1(time: TestTime()) { _ in
            .now(Response(status: 200))
        } _: { server in
            try TextFile.write(try server.certificates.websites.certificatePEM(), to: directory("ca.pem"))
            for _ in 0..<20 {
                let ended = try await Child.run(
                    "curl",
                    [
                        "--silent", "--show-error", version, "--tlsv\(tls)", "--tls-max", tls, "--cacert",
                        directory("ca.pem"), "--cert", directory("client.pem"), "--key",
                        directory("client.key"), "--data", String(repeating: "a", count: 20_000),
                        "https://localhost:\(server.port)/a",
                    ])
                #expect(ended.status != 0)
                #expect(ended.errors.contains("unknown ca"), "\(ended.errors)")
            }
        }
    }
}
