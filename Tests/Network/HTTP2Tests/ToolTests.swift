import Bytes
import Crypto
import HTTP
import TestSupport
import Testing

@testable import HTTP2

private func run(_ arguments: [String], in directory: String) async throws -> (status: Int32, output: String) {
    let ended = try await Child.run(arguments[0], Array(arguments.dropFirst()), in: directory)
    return (ended.status, ended.output)
}

/// Clients of other authors against this server, with each kind of certificate.
struct ToolTests {
    enum Kind: CaseIterable, CustomTestStringConvertible {
        case none, website, phone, expired, wrongAuthority, serverAuthOnly, revoked
        var testDescription: String { "\(self)" }
        var isTaken: Bool { [.none, .website, .phone].contains(self) }
    }

    private func withTools<Value>(
        _ kind: Kind, handler: @escaping @Sendable (Request) -> Reply,
        _ body: (_ server: TestServer, _ directory: String, _ credentials: [String]) async throws -> Value
    ) async throws -> Value {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let certificates = try TestCertificates()
        let certificate: IssuedCertificate? =
            switch kind {
            case .none: nil
            case .website, .revoked: try certificates.client()
            case .phone: try certificates.client(of: certificates.phones, names: [.uri("twoefay:device:1")])
            case .expired: try certificates.client(from: .seconds(-600), to: .seconds(-60))
            case .wrongAuthority: try certificates.client(of: TestCertificates().websites)
            case .serverAuthOnly: try certificates.client(usages: [.serverAuth])
            }
        var credentials: [String] = []
        try TextFile.write(try certificates.websites.certificatePEM(), to: directory("ca.pem"))
        if let certificate {
            try TextFile.write(try certificate.certificatePEM(), to: directory("client.pem"))
            try TextFile.write(try certificate.keyPEM().reveal(), to: directory("client.key"))
            credentials = ["--cert", directory("client.pem"), "--key", directory("client.key")]
        }
        let revoked = try certificates.client()
        let list = kind == .revoked ? certificate ?? revoked : revoked
        let crl = try certificates.websites.makeCRL(
            revoked: [(list.certificate.serial, certificates.now)], days: 2, at: certificates.now)
        return try await TestServer.with(crl: crl, certificates: certificates, handler: handler) { server in
            try await body(server, directory.path, credentials)
        }
    }

    /// Returns the authority and names of the certificate that the server received.
    @Sendable private static func describe(_ request: Request) -> Reply {
        let seen = request.certificate.map { "\($0.authority) \($0.uris.joined(separator: ","))" } ?? "none"
        return .now(Response(status: 200, body: Array("\(seen) \(request.body.count)".utf8)))
    }

    private static let expected: [Kind: String] = [
        .none: "none", .website: "websites twoefay:website:shop", .phone: "phones twoefay:device:1",
    ]

    @Test(arguments: Kind.allCases, ["1.2", "1.3"]) func curlIsServed(kind: Kind, version: String) async throws {
        try await withTools(kind, handler: Self.describe) { server, directory, credentials in
            let (status, output) = try await run(
                [
                    "curl", "--silent", "--http2", "--tlsv\(version)", "--tls-max", version, "--cacert",
                    "\(directory)/ca.pem", "--data", "hello", "--write-out", " %{http_version} %{http_code}",
                    "https://localhost:\(server.port)/x",
                ] + credentials, in: directory)
            if kind.isTaken {
                #expect(status == 0)
                #expect(output == "\(Self.expected[kind] ?? "") 5 2 200")
            } else {
                #expect(status != 0)
                #expect(!output.contains("200"))
            }
        }
    }

    @Test(arguments: Kind.allCases) func nghttpIsServed(kind: Kind) async throws {
        try await withTools(kind, handler: Self.describe) { server, directory, credentials in
            let options = credentials.enumerated().map { $0.offset % 2 == 0 ? "\($0.element)=" : $0.element }
            let joined = stride(from: 0, to: options.count, by: 2).map { options[$0] + options[$0 + 1] }
            let (_, output) = try await run(
                ["nghttp", "--timeout=120"] + joined + ["https://localhost:\(server.port)/x"], in: directory)
            #expect(output == (kind.isTaken ? "\(Self.expected[kind] ?? "") 0" : ""))
        }
    }

    @Test func curlIsRefusedWithHTTP1AndWithoutTLS() async throws {
        try await withTools(.none, handler: Self.describe) { server, directory, _ in
            for options in [["--http1.1", "--cacert", "\(directory)/ca.pem", "https"], ["http"], ["--http2", "http"]] {
                let (status, output) = try await run(
                    ["curl", "--silent", "--max-time", "120"] + options.dropLast()
                        + ["\(options[options.count - 1])://localhost:\(server.port)/"], in: directory)
                #expect(status != 0)
                #expect(output == "")
            }
            let (status, _) = try await run(
                [
                    "curl", "--silent", "--http2", "--cacert", "\(directory)/ca.pem",
                    "https://localhost:\(server.port)/",
                ], in: directory)
            #expect(status == 0)
        }
    }

    @Test func curlGets413ForAnOversizedBody() async throws {
        try await withTools(.none, handler: Self.describe) { server, directory, _ in
            try TextFile.write([UInt8](repeating: 97, count: 300_000), to: "\(directory)/large")
            let (_, output) = try await run(
                [
                    "curl", "--silent", "--http2", "--cacert", "\(directory)/ca.pem", "--data-binary",
                    "@\(directory)/large", "--write-out", " %{http_code}", "https://localhost:\(server.port)/",
                ], in: directory)
            #expect(output == "too large 413")
        }
    }

    @Test func h2loadIsAnsweredByEveryStream() async throws {
        try await withTools(.none, handler: Self.describe) { server, directory, _ in
            let (status, output) = try await run(
                ["h2load", "-n", "3000", "-c", "20", "-m", "50", "https://localhost:\(server.port)/"], in: directory)
            #expect(status == 0)
            #expect(output.contains("3000 succeeded, 0 failed, 0 errored, 0 timeout"))
        }
    }
}
