import Bytes
import Crypto
import EventLoop
import HTTP
import HTTP2
import JSON
import Log
import Synchronization
import TLS
import World

/// A relay with prepared answers, over real TLS. It records the requests.
public final class FakeRelay: Handler {
    public struct Asked: Sendable {
        public let method: String
        public let path: String
        public let fields: Fields
        public let body: JSONObject
        public let certificate: ClientCertificate?
    }

    public let authority: CertificateAuthority
    public let phones: CertificateAuthority
    public let websites: CertificateAuthority
    private typealias Answering = @Sendable (Asked) throws -> Response
    private let answers: Mutex<[Answering]>
    private let seen = Mutex<[Asked]>([])
    private let certificate = Mutex<IssuedCertificate?>(nil)

    public init(_ answers: (Int, JSONObject)...) throws {
        let now = SystemTime().now()
        // The authority is older than any certificate of `run`, also than one that has expired.
        authority = try CertificateAuthority.create(commonName: "relay", days: 21, at: now - .seconds(20 * 86_400))
        phones = try CertificateAuthority.create(commonName: "phones", days: 1, at: now)
        websites = try CertificateAuthority.create(commonName: "websites", days: 1, at: now)
        self.answers = Mutex(answers.map { (status, body) in { _ in Self.response(status, body) } })
    }

    public var asked: [Asked] { seen.withLock { $0 } }

    /// Adds an answer after the existing ones.
    public func answer(_ status: Int, _ body: JSONObject, fields: [Fields.Field] = []) {
        answers.withLock { $0.append { _ in Self.response(status, body, fields) } }
    }

    /// Adds a 200 answer that depends on the request.
    public func answer(_ body: @escaping @Sendable (Asked) throws -> JSONObject) {
        answers.withLock { $0.append { asked in Self.response(200, try body(asked)) } }
    }

    /// Returns an answer to `GET /time` that says this time, signed by the certificate of `run`.
    public func signedTime(_ time: Timestamp, for asked: Asked, at address: WebAddress) throws -> JSONObject {
        guard let server = certificate.withLock({ $0 }) else { throw SystemFailure("the relay does not run", 0) }
        let claims: JSONObject = [
            "v": 1, "aud": .string(address.text), "nonce": .string(asked.fields["nonce"] ?? ""),
            "time": .string(time.rfc3339),
        ]
        let name = Base64URL.encode(SHA256.hash(server.certificate.der))
        let statement = try JWS.sign(
            header: ["typ": "twoefay-time+jwt", "x5t#S256": .string(name)], payload: JSONWriter.write(claims),
            key: server.key)
        return ["time": .string(statement)]
    }

    /// Returns an answer to `POST /device/goodbye`, signed by the certificate of `run`.
    public func signedFarewell(
        for asked: Asked, audience: String, thumbprint: String, device: String,
        type: String = "twoefay-farewell+jwt", _ change: (inout JSONObject) -> Void = { _ in }
    ) throws -> JSONObject {
        guard let server = certificate.withLock({ $0 }) else { throw SystemFailure("the relay does not run", 0) }
        let goodbye = try JWS.parse(asked.body["goodbye"]?.string ?? "")
        let nonce = try JSONReader.read(goodbye.payload).object?["nonce"] ?? .null
        var claims: JSONObject = [
            "v": 1, "aud": .string(audience), "device": .string(device), "thumbprint": .string(thumbprint),
            "by": "website", "nonce": nonce, "time": "2026-11-21T10:00:00.000Z",
        ]
        change(&claims)
        let name = Base64URL.encode(SHA256.hash(server.certificate.der))
        let statement = try JWS.sign(
            header: ["typ": .string(type), "x5t#S256": .string(name)], payload: JSONWriter.write(claims),
            key: server.key)
        return ["device": .string(device), "farewell": .string(statement)]
    }

    private static func response(_ status: Int, _ body: JSONObject, _ fields: [Fields.Field] = []) -> Response {
        guard status != 204 else { return Response(status: status, fields: Fields(fields)) }
        // A client believes a refusal only in this form.
        var body = body
        if status >= 400 { body["status"] = .integer(Int64(status)) }
        let type = status >= 400 ? "application/problem+json" : "application/json"
        return Response(
            status: status, fields: Fields([.init("content-type", type)] + fields), body: JSONWriter.write(body))
    }

    public func handle(_ request: Request) -> Reply {
        let body = (try? JSONReader.read(request.body))?.object ?? [:]
        let asked = Asked(
            method: request.method, path: request.path, fields: request.fields, body: body,
            certificate: request.certificate)
        seen.withLock { $0.append(asked) }
        let answering = answers.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        return .now((try? answering?(asked)) ?? Response(status: 500))
    }

    /// Runs the body of a test on a loop where this relay listens. A `keeper` controls the
    /// connections, and answers in place of the relay.
    ///
    /// - Parameters:
    ///   - clock: the clock of the loop.
    ///   - certified: the time from which the relay's certificate is valid, for one day.
    public func run<Value: Sendable>(
        keeper: (@Sendable () -> any ServerController)? = nil, clock: any TimeSource = SystemTime(),
        certified: Timestamp = SystemTime().now(),
        _ body: @escaping @Sendable (EventLoop, WebAddress) async throws -> Value
    ) async throws -> Value {
        let group = try LoopGroup.start(count: 1, time: clock)
        defer { group.stopAndJoin() }
        let loop = group.loops[0]
        let server = try authority.issueServer(names: ["127.0.0.1"], days: 1, at: certified)
        certificate.withLock { $0 = server }
        let tls = try TLSServerContext(
            certificateChainPEM: server.certificatePEM() + authority.certificatePEM(), privateKeyPEM: server.keyPEM(),
            websitesCA: websites.certificatePEM(), phonesCA: phones.certificatePEM())
        return try await loop.perform { () async -> Result<Value, any Error> in
            do {
                guard let address = SocketAddress(host: "127.0.0.1", port: 0) else {
                    throw SystemFailure("address", 0)
                }
                let server = try HTTP2Server(
                    loop: loop, address: address, tls: tls, handler: self, keeper: keeper?(),
                    log: Log(sink: MemorySink()))
                try server.start()
                let value: Result<Value, any Error>
                do {
                    let address = WebAddress(secure: true, host: "127.0.0.1", port: server.port)
                    value = .success(try await body(loop, address))
                } catch {
                    value = .failure(error)
                }
                await withCheckedContinuation { continuation in server.drain { continuation.resume() } }
                return value
            } catch {
                return .failure(error)
            }
        }.get()
    }
}
