import Couriers
import Crypto
import Curl
import Domain
import EventLoop
import HTTP
import HTTP2
import Log
import Relay
import Synchronization
import TLS
import TestSupport
import Testing
import Webhooks
import World

/// A courier on a separate loop, with the settings to reach websites on this machine.
struct WebhookCourierRig: Sendable {
    /// The courier's clock: 2027-01-15T08:00:00Z.
    static let now = Timestamp(milliseconds: 1_800_000_000_000)

    let group: LoopGroup
    let certificates: TestCertificates
    let courier: HTTPWebhookCourier
    let sink = MemorySink()

    /// Runs `body` with a courier. All its timeouts are long, except the deadline.
    static func with<Value: Sendable>(
        allowing ranges: [String] = ["127.0.0.0/8"], certificate name: String? = nil,
        trusting certificates: TestCertificates? = nil, deadline: Duration = .seconds(120),
        _ body: (WebhookCourierRig) async throws -> Value
    ) async throws -> Value {
        let rig = try WebhookCourierRig(ranges, name, certificates ?? TestCertificates(), deadline)
        defer {
            rig.courier.close()
            rig.group.stopAndJoin()
        }
        return try await body(rig)
    }

    private init(_ ranges: [String], _ name: String?, _ certificates: TestCertificates, _ deadline: Duration) throws {
        self.certificates = certificates
        group = try LoopGroup.start(count: 1, time: SystemTime())
        var options = HTTPWebhookCourier.Options()
        options.deadline = deadline
        options.client.connectTimeout = .seconds(120)
        options.client.addresses = AddressGuard(allowing: try ranges.map { try #require(AddressRange($0)) })
        options.client.extraTrust = try certificates.websites.certificatePEM()
        if let name {
            let issued = try certificates.client(names: [.uri(name)])
            options.client.clientCertificate = WebClientOptions.ClientCertificate(
                chain: try issued.certificatePEM(), key: try issued.keyPEM())
        }
        courier = HTTPWebhookCourier(time: TestTime(start: Self.now), log: Log(sink: sink), options: options)
    }

    func webhook(_ url: String, body: String = "{}") -> WebhookRequest {
        guard let id = OutboxEntryID(SystemRandomness().bytes(16)) else { preconditionFailure("sixteen bytes") }
        return WebhookRequest(
            id: id, url: url,
            fields: [
                ("content-type", "application/json"), ("webhook-id", id.text), ("webhook-timestamp", "1800000000"),
                ("webhook-signature", "v1,AAAA v1,BBBB"),
            ], body: Array(body.utf8))
    }

    func send(_ webhook: WebhookRequest) async -> WebhookOutcome {
        await group.loops[0].perform { [courier] in await courier.send(webhook) }
    }

    /// Sends all webhooks at once.
    func send(_ webhooks: [WebhookRequest]) async -> [WebhookOutcome] {
        await withTaskGroup(of: WebhookOutcome.self) { tasks in
            for webhook in webhooks { tasks.addTask { await send(webhook) } }
            return await tasks.reduce(into: []) { $0.append($1) }
        }
    }

    /// Runs a website over HTTP/2. It requests a client certificate, but does not require one.
    func serving<Value: Sendable>(
        _ answer: @escaping @Sendable (Request) -> CalledWebsite.Answer, as other: TestCertificates? = nil,
        certificate: IssuedCertificate? = nil, _ body: (CalledWebsite) async throws -> Value
    ) async throws -> Value {
        let issued = certificate ?? (other ?? certificates).server
        let tls = try TLSServerContext(
            certificateChainPEM: issued.certificatePEM(), privateKeyPEM: issued.keyPEM(),
            websitesCA: certificates.websites.certificatePEM(), phonesCA: certificates.phones.certificatePEM(), crl: nil
        )
        let website = CalledWebsite(answer)
        let address = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        let loop = group.loops[0]
        let server = try await loop.perform { () -> Result<LoopBound<HTTP2Server>, any Error> in
            Result {
                let server = try HTTP2Server(
                    loop: loop, address: address, tls: tls, handler: website, log: Log(sink: MemorySink()))
                try server.start()
                website.listens(on: server.port)
                return LoopBound(server, on: loop)
            }
        }.get()
        let result: Result<Value, any Error>
        do { result = .success(try await body(website)) } catch { result = .failure(error) }
        await loop.perform { server.value.stop() }
        return try result.get()
    }
}

/// A website that records the webhooks and gives the set answers.
final class CalledWebsite: Handler {
    enum Answer: Sendable {
        case status(Int)
        case response(Response)
    }

    private let answer: @Sendable (Request) -> Answer
    private let state = Mutex((port: UInt16(0), requests: [Request]()))

    init(_ answer: @escaping @Sendable (Request) -> Answer) { self.answer = answer }

    func listens(on port: UInt16) { state.withLock { $0.port = port } }
    func url(_ path: String) -> String { "https://localhost:\(state.withLock { $0.port })\(path)" }
    var requests: [Request] { state.withLock { $0.requests } }

    func handle(_ request: Request) -> Reply {
        state.withLock { $0.requests.append(request) }
        return switch answer(request) {
        case .status(let status): .now(Response(status: status))
        case .response(let response): .now(response)
        }
    }
}
