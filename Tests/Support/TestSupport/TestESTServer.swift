import Bytes
import Crypto
import EventLoop
import HTTP
import HTTP2
import Log
import Synchronization
import World

/// An EST server over TLS with its own authority, which issues what it is asked for. Its threads end
/// when the test releases it.
public final class TestESTServer: Sendable {
    public let authority: CertificateAuthority
    /// The authority of the server's own certificate, in PEM.
    public let trusted: [UInt8]
    public let port: UInt16
    private let handler: Answers
    private let group: LoopGroup
    private let server: LoopBound<HTTP2Server>

    public init() async throws {
        let certificates = try TestCertificates()
        let authority = try CertificateAuthority.create(commonName: "outside", days: 1000, at: certificates.now)
        self.authority = authority
        trusted = try certificates.websites.certificatePEM()
        let (tls, handler) = (try certificates.serverContext(), Answers(authority))
        self.handler = handler
        group = try LoopGroup.start(count: 1, time: SystemTime())
        let loop = group.loops[0]
        let started = await loop.perform { () async -> Result<(LoopBound<HTTP2Server>, UInt16), any Error> in
            Result {
                guard let address = SocketAddress(host: "127.0.0.1", port: 0) else { throw SystemFailure("address", 0) }
                let server = try HTTP2Server(
                    loop: loop, address: address, tls: tls, handler: handler, log: Log(sink: MemorySink()))
                try server.start()
                return (LoopBound(server, on: loop), server.port)
            }
        }
        (server, port) = try started.get()
    }

    deinit { group.stopAndJoin() }

    /// The URL of a profile, such as `phones`.
    public func url(_ profile: String) -> String { "https://localhost:\(port)/.well-known/est/\(profile)" }

    /// The last parts of the paths of the requests, such as `phones/simpleenroll`.
    public var operations: [String] {
        handler.requests.map { String($0.path.dropFirst("/.well-known/est/".count)) }
    }

    /// The certificate requests in base64, in their order.
    public var bodies: [[UInt8]] { handler.requests.map(\.body) }

    public var authorizations: Set<String?> { Set(handler.requests.map { $0.fields["authorization"] }) }

    /// Lets the server answer the next requests with this status.
    public func refuse(_ status: Int?) { handler.refusal.withLock { $0 = status } }
}

private final class Answers: Handler {
    private let authority: CertificateAuthority
    private let seen = Mutex<[Request]>([])
    let refusal = Mutex<Int?>(nil)

    init(_ authority: CertificateAuthority) { self.authority = authority }

    var requests: [Request] { seen.withLock { $0 } }

    func handle(_ request: Request) -> Reply {
        seen.withLock { $0.append(request) }
        if let status = refusal.withLock({ $0 }) { return .now(Response(status: status)) }
        do {
            if request.path.hasSuffix("/cacerts") { return .now(CertsOnly.answer([authority.certificate])) }
            let text = String(decoding: request.body.filter { $0 != 13 && $0 != 10 }, as: UTF8.self)
            let asked = try SigningRequest(der: Base64.decode(text) ?? [])
            let isDocument = request.path.contains("/documents/")
            return .now(
                CertsOnly.answer([
                    authority.certificate,
                    try authority.certificate(for: asked, usage: isDocument ? .documentSigning : .clientAuth),
                ]))
        } catch {
            return .now(Response(status: 400))
        }
    }
}

extension CertificateAuthority {
    /// Issues a certificate with the name for which a phone asks.
    public func certificate(
        for request: SigningRequest, usage: CertificateRequest.Usage, days: Int64 = 60,
        _ change: (inout CertificateRequest) -> Void = { _ in }
    ) throws -> Certificate {
        let prefix = Array("twoefay:".utf8)
        guard let start = request.der.indices.first(where: { request.der[$0...].starts(with: prefix) }) else {
            throw SystemFailure("name", 0)
        }
        // The name is shorter than 128 bytes, so one byte before it has its length.
        let name = request.der[start...].prefix(Int(request.der[start - 1]))
        let (uri, now) = (String(decoding: name, as: UTF8.self), SystemTime().now())
        var wanted = CertificateRequest(
            key: request.key, commonName: uri, names: [.uri(uri)], usages: [usage],
            notBefore: now - .seconds(60), notAfter: now + .seconds(86_400 * days))
        change(&wanted)
        return try issue(wanted)
    }
}

/// Writes certs-only messages (RFC 5652), independently of the reader.
public enum CertsOnly {
    /// The answer of an EST server with these certificates, in lines of base64.
    public static func answer(
        _ all: [Certificate], type: String = "application/pkcs7-mime; smime-type=certs-only"
    ) -> Response {
        Response(status: 200, fields: Fields([.init("content-type", type)]), body: base64(all))
    }

    public static func base64(_ all: [Certificate]) -> [UInt8] {
        let text = Array(Base64.encode(message(all.map(\.der))).utf8)
        return stride(from: 0, to: text.count, by: 64).flatMap { text[$0..<min($0 + 64, text.count)] + [13, 10] }
    }

    public static func message(_ certificates: [[UInt8]]) -> [UInt8] {
        let data: [UInt8] = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01]
        let signed =
            [0x02, 0x01, 0x01, 0x31, 0x00] + value(0x30, data) + value(0xa0, certificates.flatMap { $0 }) + [
                0x31, 0x00,
            ]
        let type: [UInt8] = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02]
        return value(0x30, type + value(0xa0, value(0x30, signed)))
    }

    private static func value(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        let count = content.count
        if count < 0x80 { return [tag, UInt8(count)] + content }
        if count < 0x100 { return [tag, 0x81, UInt8(count)] + content }
        return [tag, 0x82, UInt8(count >> 8), UInt8(count & 0xff)] + content
    }
}
