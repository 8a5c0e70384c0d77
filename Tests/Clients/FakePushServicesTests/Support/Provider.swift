import Bytes
import Crypto
import EventLoop
import HTTP
import HTTP2
import JSON
import Log
import Synchronization
import TLS
import TestSupport
import Testing
import World

@testable import FakePushServices

/// A fake service and a provider that sends raw requests, each on its own loop.
final class Fixture: Sendable {
    let team: FakeTeam
    let apple: FakePushService
    /// The opened and closed connections of the service.
    let events: Mailbox<ConnectionEvent>
    let loop: EventLoop
    private let token: String

    private init(_ loops: [EventLoop], keeping: RecordingLimits) async throws {
        let now = SystemTime().now()
        loop = loops[1]
        team = try FakeTeam(at: now)
        token = try JWS.sign(
            header: ["kid": .string(team.keyID)],
            payload: JSONWriter.write(["iss": .string(team.teamID), "iat": .integer(now.seconds)] as JSONObject),
            key: team.key)
        let events = Mailbox<ConnectionEvent>(loop: loops[0])
        self.events = events
        apple = FakePushService(
            loop: loops[0], tls: try team.tls(), topic: team.topic, authentication: team.tokenAuthentication,
            keeping: keeping, randomness: SystemRandomness(), log: Log(minimum: .error),
            onConnection: { events.put($0) })
        try await apple.start()
    }

    static func with(keeping: RecordingLimits = .everything, _ body: (Fixture) async throws -> Void) async throws {
        let group = try LoopGroup.start(count: 2, time: SystemTime())
        defer { group.stopAndJoin() }
        let fixture = try await Fixture(group.loops, keeping: keeping)
        try await body(fixture)
        await fixture.apple.stop()
    }

    /// Returns a connected provider that has received the SETTINGS of the service.
    func provider(certificate: IssuedCertificate? = nil) async throws -> Provider {
        let provider = try await disconnected(certificate: certificate)
        if let failure = await provider.connect() { throw failure }
        return provider
    }

    func disconnected(
        certificate: IssuedCertificate? = nil, timeout: Duration = .seconds(120)
    ) async throws -> Provider {
        let tls = try TLSClientContext(
            roots: .pem(team.authority.certificatePEM()), certificateChainPEM: certificate?.certificatePEM(),
            privateKeyPEM: certificate?.keyPEM())
        return await Provider(
            loop: loop, port: apple.port, tls: tls, topic: team.topic, token: token,
            timeout: timeout)
    }

    static func id(_ number: Int) -> String {
        let digits = String(number, radix: 16)
        return "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.utf8.count) + digits
    }
}

/// One connection to the service.
struct Provider: Sendable {
    private let loop: EventLoop
    private let client: LoopBound<HTTP2Client>
    private let topic: String
    private let token: String
    private let states: AsyncStream<ClientState>

    init(
        loop: EventLoop, port: UInt16, tls: TLSClientContext, topic: String, token: String, timeout: Duration
    ) async {
        self.loop = loop
        self.topic = topic
        self.token = token
        var options = ClientOptions()
        options.connectTimeout = timeout
        options.userTimeout = .seconds(120)
        options.pingTimeout = .seconds(120)
        let (states, continuation) = AsyncStream.makeStream(of: ClientState.self)
        self.states = states
        client = await loop.perform { [options] in
            let client = HTTP2Client(
                loop: loop, host: "127.0.0.1", port: port, tls: tls, options: options, log: Log(minimum: .error))
            client.onStateChange = { continuation.yield($0) }
            return LoopBound(client, on: loop)
        }
    }

    func connect() async -> ConnectionFailure? {
        await loop.perform { () -> ConnectionFailure? in
            do throws(ConnectionFailure) {
                try await client.value.connect()
                return nil
            } catch { return error }
        }
    }

    func send(
        _ device: String = "a1", number: Int = 1, deadline: Duration = .seconds(120)
    ) async -> Result<Response, RequestFailure> {
        await loop.perform { await client.value.send(request(device, number), deadline: deadline) }
    }

    private func request(_ device: String, _ number: Int) -> ClientRequest {
        ClientRequest(
            method: "POST", path: "/3/device/\(device)", authority: "127.0.0.1",
            fields: Fields([
                .init("authorization", "bearer " + token), .init("apns-topic", topic),
                .init("apns-push-type", "alert"), .init("apns-id", Fixture.id(number)),
            ]),
            body: Array(#"{"aps":{"alert":{"title":"t"}},"challenge":"c"}"#.utf8))
    }

    /// Returns `200`, `410 Unregistered`, or the failure.
    func answer(_ device: String = "a1", number: Int = 1, deadline: Duration = .seconds(120)) async -> String {
        Self.words(await send(device, number: number, deadline: deadline))
    }

    private static func words(_ result: Result<Response, RequestFailure>) -> String {
        switch result {
        case .success(let response):
            let reason = (try? JSONReader.read(response.body).object)?["reason"]?.string
            return reason.map { "\(response.status) \($0)" } ?? "\(response.status)"
        case .failure(.notSent): return "not sent"
        case .failure(.ambiguous): return "ambiguous"
        }
    }

    /// Sends all requests in this order in one turn of the loop, as far as the stream limit allows.
    func answers(_ devices: [String], from first: Int = 1) async -> [String] {
        await loop.perform {
            await withCheckedContinuation { continuation in
                var words = devices
                var left = devices.count
                for (index, device) in devices.enumerated() {
                    client.value.send(request(device, first + index), deadline: .seconds(120)) { result in
                        words[index] = Self.words(result)
                        left -= 1
                        if left == 0 { continuation.resume(returning: words) }
                    }
                }
            }
        }
    }

    func answers(_ count: Int, from first: Int = 1) async -> [String] {
        await answers([String](repeating: "a1", count: count), from: first)
    }

    var streamLimit: Int {
        get async { await loop.perform { client.value.peerMaxConcurrentStreams } }
    }

    /// Returns the round-trip time, or nil if no acknowledgement arrived in time.
    func ping() async -> Duration? { await loop.perform { await client.value.ping() } }

    func isIn(_ wanted: ClientState) async {
        if await loop.perform({ client.value.state }) == wanted { return }
        for await state in states where state == wanted { return }
    }

    func close() async { await loop.perform { client.value.close() } }
}
