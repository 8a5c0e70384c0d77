import Bytes
import Crypto
import Curl
import EventLoop
import HTTP
import HTTP2
import JSON
import Log
import Synchronization
import WebPush
import World

/// A check of the field that identifies the sender to a push service (RFC 8292), implemented
/// independently.
public enum VAPIDCheck {
    /// Returns the claims of `vapid t=…, k=…`; nil unless that key signed them.
    public static func claims(of field: String) throws -> JSONObject? {
        guard field.hasPrefix("vapid ") else { return nil }
        var parts: [String: String] = [:]
        for part in field.dropFirst(6).split(separator: ",") {
            let pair = part.drop { $0 == " " }.split(separator: "=", maxSplits: 1).map(String.init)
            guard pair.count == 2, parts[pair[0]] == nil else { return nil }
            parts[pair[0]] = pair[1]
        }
        guard let token = parts["t"], let point = parts["k"].flatMap({ Base64URL.decode($0) }) else { return nil }
        let jws = try JWS.parse(token)
        guard jws.verify(try P256PublicKey(x963: point)), jws.type == "JWT" else { return nil }
        return try JSONReader.read(jws.payload).object
    }
}

/// A push service for browsers, over HTTP/2 and TLS. It checks every request against RFC 8030, 8291
/// and 8292, and keeps the messages for its subscribers, whose keys it does not have.
public final class TestPushService: Sendable {
    public struct Received: Sendable {
        public let path: String
        public let ttl: Int64
        public let urgency: String?
        public let topic: String?
        public let authorization: String
        public let claims: JSONObject
        public let body: [UInt8]
    }

    public enum Answer: Sendable {
        case take
        case respond(Int, [Fields.Field] = [])
        case silence
    }

    private struct State {
        var server: LoopBound<HTTP2Server>?
        var port: UInt16 = 0
        var received: [Received] = []
        var faults: [String] = []
        var script: [(prefix: String, answers: [Answer])] = []
    }

    private let group: LoopGroup
    private let sink = ObservedSink()
    private let log: Log
    public let certificates: TestCertificates
    private let state = Mutex(State())

    /// Starts a service on a free port of 127.0.0.1. It ends when the last reference is released.
    public static func start() async throws -> TestPushService {
        let service = try TestPushService()
        let tls = try service.certificates.serverContext()
        guard let address = SocketAddress(host: "127.0.0.1", port: 0) else { throw SystemFailure("address", 0) }
        let loop = service.group.loops[0]
        let started = await loop.perform { () -> Result<(LoopBound<HTTP2Server>, UInt16), any Error> in
            Result {
                let server = try HTTP2Server(
                    loop: loop, address: address, tls: tls, handler: PushHandler(service: service),
                    log: Log(sink: MemorySink()))
                try server.start()
                return (LoopBound(server, on: loop), server.port)
            }
        }
        let (server, port) = try started.get()
        service.state.withLock { ($0.server, $0.port) = (server, port) }
        return service
    }

    private init() throws {
        group = try LoopGroup.start(count: 1, time: SystemTime())
        certificates = try TestCertificates()
        log = Log(sink: sink)
    }

    deinit { group.stopAndJoin() }

    /// A handler with a weak reference, because the service keeps the server.
    private struct PushHandler: Handler {
        weak let service: TestPushService?

        func handle(_ request: Request) -> Reply { service?.handle(request) ?? .now(Response(status: 503)) }
    }

    public var port: UInt16 { state.withLock { $0.port } }
    public func origin(_ host: String = "localhost") -> String { "https://\(host):\(port)" }

    /// Sets the answers to the next requests with this path prefix, one for each; the last one
    /// repeats.
    public func script(_ prefix: String, _ answers: Answer...) {
        state.withLock { $0.script.append((prefix, answers)) }
    }

    /// Returns the valid requests, with any answer, when there are `count`.
    public func received(_ count: Int) async -> [Received] {
        await sink.lines(of: "push.received", count: count)
        return state.withLock { $0.received }
    }

    /// The errors of invalid requests.
    public var faults: [String] { state.withLock { $0.faults } }
    /// The number of requests so far.
    public var count: Int { state.withLock { $0.received.count + $0.faults.count } }

    fileprivate func handle(_ request: Request) -> Reply {
        let received: Received
        do {
            received = try read(request)
        } catch {
            state.withLock { $0.faults.append("\(error)") }
            return .now(Response(status: 400))
        }
        let answer = state.withLock { state -> Answer in
            state.received.append(received)
            guard let at = state.script.firstIndex(where: { request.path.hasPrefix($0.prefix) }) else { return .take }
            let answers = state.script[at].answers
            if answers.count > 1 { state.script[at].answers.removeFirst() }
            return answers.first ?? .take
        }
        log.info("push.received")
        switch answer {
        case .take:
            return .now(Response(status: 201, fields: Fields([Fields.Field("location", "\(origin())/m/1")])))
        case .respond(let status, let fields): return .now(Response(status: status, fields: Fields(fields)))
        case .silence:
            let loop = group.loops[0]
            return .later(deadline: .seconds(3600), late: { Response(status: 500) }) {
                await loop.sleep(for: .seconds(3600))
                return .response(Response(status: 500))
            }
        }
    }

    private struct Wrong: Error, CustomStringConvertible {
        let description: String
    }

    private func read(_ request: Request) throws -> Received {
        func one(_ name: String) throws -> String? {
            let values = request.fields.values(name)
            guard values.count <= 1 else { throw Wrong(description: "\(name) occurs twice") }
            return values.first
        }
        func require(_ isRight: Bool, _ what: String) throws {
            guard isRight else { throw Wrong(description: what) }
        }
        try require(request.method == "POST", "the method")
        guard let ttl = try one("ttl").flatMap({ Int64($0) }), ttl >= 0 else { throw Wrong(description: "no TTL") }
        let urgency = try one("urgency")
        try require(["very-low", "low", "normal", "high", nil].contains(urgency), "urgency")
        let topic = try one("topic")
        try require((topic ?? "a").utf8.count <= 32 && Self.isBase64URL(topic ?? "a"), "topic")
        try require(try one("content-encoding") == "aes128gcm", "content-encoding")
        // The salt, the record size, a key of 65 bytes, and a record of at least one byte.
        try require((104...4096).contains(request.body.count) && request.body[20] == 65, "the body")
        guard let authorization = try one("authorization"), let claims = try VAPIDCheck.claims(of: authorization) else {
            throw Wrong(description: "no right VAPID")
        }
        let now = SystemTime().now().seconds
        let audience = claims["aud"]?.string
        try require([origin(), origin("127.0.0.1")].contains(audience), "aud is \(audience ?? "missing")")
        guard let end = claims["exp"]?.integer else { throw Wrong(description: "no exp") }
        try require(end > now && end <= now + 24 * 3600, "exp")
        try require(claims["sub"]?.string?.hasPrefix("mailto:") == true, "sub")
        return Received(
            path: request.path, ttl: ttl, urgency: urgency, topic: topic, authorization: authorization, claims: claims,
            body: request.body)
    }

    private static func isBase64URL(_ text: String) -> Bool {
        text.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x61...0x7a).contains(byte | 0x20) || byte == UInt8(ascii: "-")
                || byte == UInt8(ascii: "_")
        }
    }
}

/// A browser with a push subscription.
public struct TestSubscriber: Sendable {
    public let key: P256PrivateKey
    public let auth: Secret
    public let subscription: PushSubscription

    public struct NoURL: Error {}

    public init(_ endpoint: String) throws {
        key = try P256PrivateKey.generate()
        auth = Secret(SystemRandomness().bytes(16))
        guard let url = TransferURL(endpoint) else { throw NoURL() }
        subscription = PushSubscription(endpoint: url, publicKey: key.publicKey, auth: auth)
    }

    public func open(_ received: TestPushService.Received) -> [UInt8]? {
        MessageCoding.open(received.body, key: key, auth: auth)
    }
}
