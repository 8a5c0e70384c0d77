import Bytes
import Crypto
import Daemon
import EventLoop
import HTTP
import HTTP2
import JSON
import Log
import Synchronization
import TLS
import World

/// A relay that answers what a test has written down, over real TLS, and keeps what it was asked.
final class FakeRelay: Handler {
    struct Asked: Sendable {
        let path: String
        let fields: Fields
        let body: JSONObject
        let certificate: ClientCertificate?
    }

    let authority: CertificateAuthority
    let phones: CertificateAuthority
    let websites: CertificateAuthority
    private let answers: Mutex<[(status: Int, body: JSONObject)]>
    private let seen = Mutex<[Asked]>([])

    init(_ answers: (Int, JSONObject)...) throws {
        let now = SystemTime().now()
        authority = try CertificateAuthority.create(commonName: "relay", days: 1, at: now)
        phones = try CertificateAuthority.create(commonName: "phones", days: 1, at: now)
        websites = try CertificateAuthority.create(commonName: "websites", days: 1, at: now)
        self.answers = Mutex(answers.map { ($0.0, $0.1) })
    }

    var asked: [Asked] { seen.withLock { $0 } }

    /// One more, behind those there are.
    func answer(_ status: Int, _ body: JSONObject) { answers.withLock { $0.append((status, body)) } }

    func handle(_ request: Request) -> Reply {
        let body = (try? JSONReader.read(request.body))?.object ?? [:]
        let asked = Asked(
            path: request.path, fields: request.fields, body: body, certificate: request.certificate)
        seen.withLock { $0.append(asked) }
        let (status, answer) = answers.withLock { $0.isEmpty ? (500, [:]) : $0.removeFirst() }
        return .now(Response(status: status, body: JSONWriter.write(answer)))
    }

    func tooLarge() -> Response { Response(status: 413) }

    /// Runs a test's body on a loop where this relay listens.
    func run<Value: Sendable>(_ body: @escaping @Sendable (EventLoop, WebAddress) async -> Value) async throws -> Value
    {
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        defer { group.stopAndJoin() }
        let loop = group.loops[0]
        let server = try authority.issueServer(names: ["127.0.0.1"], days: 1, at: SystemTime().now())
        let tls = try TLSServerContext(
            certificateChainPEM: server.certificatePEM() + authority.certificatePEM(), privateKeyPEM: server.keyPEM(),
            websitesCA: websites.certificatePEM(), phonesCA: phones.certificatePEM())
        return try await loop.perform { () async -> Result<Value, any Error> in
            do {
                guard let address = SocketAddress(host: "127.0.0.1", port: 0) else {
                    throw SystemFailure("address", 0)
                }
                let server = try HTTP2Server(
                    loop: loop, address: address, tls: tls, handler: self, log: Log(sink: MemorySink()))
                try server.start()
                let value = await body(loop, WebAddress(secure: true, host: "127.0.0.1", port: server.port))
                await withCheckedContinuation { continuation in server.drain { continuation.resume() } }
                return .success(value)
            } catch {
                return .failure(error)
            }
        }.get()
    }
}
