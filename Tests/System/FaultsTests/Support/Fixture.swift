import Bytes
import Crypto
import EventLoop
import FakePushServices
import JSON
import Log
import TestSupport
import Testing
import World

/// A running relay with one website, and optionally a push service.
struct Fixture: Sendable {
    let relay: RunningRelay
    let shop: ReconnectingClient
    /// A client without a certificate.
    let anyone: ReconnectingClient
    let apple: TestAPNs?

    static let website = "shop"

    static func start(
        _ kind: StoreKind = .file, apple: TestAPNs? = nil, by programs: String? = nil, tables: Int64? = nil,
        change: (inout String) throws -> Void = { _ in }
    ) async throws -> Fixture {
        let relay = try await RunningRelay.start(kind, by: programs, tables: tables) { settings in
            try apple?.set(in: &settings)
            try change(&settings)
        }
        // Clients that retry must not reach the limits.
        let shop = try await relay.website(
            website, "--answers", "certificate", "--login-limit", "1000", "--push-limit", "100")
        let files = (try #require(shop.certificatePath), try #require(shop.keyPath))
        return Fixture(
            relay: relay,
            shop: try ReconnectingClient(
                relay, certificate: try TextFile.bytes(files.0), key: Secret(try TextFile.bytes(files.1))),
            anyone: try ReconnectingClient(relay), apple: apple)
    }

    // MARK: The steps of a login

    func register(_ username: String) async throws -> (token: String, code: String) {
        let reply = try await shop.send("POST", "/register", ["username": .string(username)])
        try #require(reply.status == 201, "\(reply)")
        return try Self.registered(reply)
    }

    static func registered(_ reply: Reply) throws -> (token: String, code: String) {
        (try #require(reply["token"]), try #require(reply.json["activation"]?.object?["code"]?.string))
    }

    func verifyBody(_ phone: TestPhone, token: String, code: String) throws -> JSONObject {
        let proof = try phone.proof(
            token: token, code: code, origin: relay.origin, website: Self.website, at: SystemTime().now())
        return [
            "id_token": .string(token), "dev_token": .string(phone.pushToken), "activation_code": .string(code),
            "proof": .string(proof), "platform": "ios",
        ]
    }

    func verify(_ phone: TestPhone, token: String, code: String) async throws -> Phone {
        let reply = try await anyone.send("POST", "/verify", try verifyBody(phone, token: token, code: code))
        return try self.phone(phone, reply)
    }

    func phone(_ phone: TestPhone, _ reply: Reply) throws -> Phone {
        try #require(reply.status == 200, "\(reply)")
        let certificate = try #require(reply["certificate"])
        return Phone(
            device: try #require(reply["device"]), pushToken: phone.pushToken,
            client: try ReconnectingClient(relay, certificate: Array(certificate.utf8), key: try phone.key.pem()))
    }

    /// Registers a user, and binds a phone.
    func enrol(_ username: String, pushToken: String = Fixture.pushToken()) async throws -> (
        token: String, phone: Phone
    ) {
        let (token, code) = try await register(username)
        return (token, try await verify(try TestPhone(pushToken: pushToken), token: token, code: code))
    }

    func login(_ token: String, key: String? = nil, _ more: JSONObject = [:]) async throws -> Login {
        var body: JSONObject = ["token": .string(token)]
        for member in more.members { body.set(member.name, member.value) }
        return try Login(try await shop.send("POST", "/login", body, key: key))
    }

    func auth(_ challenge: String, wait: Int? = nil) async throws -> Reply {
        try await shop.send("POST", "/auth", ["challenge": .string(challenge)], wait: wait)
    }

    /// Returns a push token like those of a phone's operating system.
    static func pushToken(_ prefix: String = "") -> String {
        prefix + String(Hex.encode(SystemRandomness().bytes(32)).dropFirst(prefix.utf8.count))
    }
}

struct Login: Sendable, Equatable {
    let challenge: String
    let number: String?
    let factor: String?
    let expiresAt: String

    init(_ reply: Reply) throws {
        try #require(reply.status == 201, "\(reply)")
        challenge = try #require(reply["challenge"])
        number = reply["number"]
        factor = reply["factor"]
        expiresAt = try #require(reply["expires_at"])
    }
}

/// A bound phone that authenticates with its certificate.
struct Phone: Sendable {
    let device: String
    let pushToken: String
    let client: ReconnectingClient

    func approve(_ login: Login) async throws -> Reply { try await client.send("POST", "/success", answer(login)) }

    func answer(_ login: Login) -> JSONObject {
        var body: JSONObject = ["challenge": .string(login.challenge)]
        if let number = login.number { body.set("number", .string(number)) }
        return body
    }
}
