import Bytes
import Crypto
import EventLoop
import JSON
import Synchronization
import TestSupport
import Testing
import Webhooks
import World

/// A website that receives webhooks, with one user who has a phone.
struct WebhookShop: Sendable {
    /// A received webhook, once for each arrival.
    struct Heard: Sendable {
        let id: String
        let type: String
        /// The challenge; nil if the webhook is about none.
        let challenge: String?
        let body: String
        /// Whether the website's secret has signed it, a moment ago.
        let isTrue: Bool
    }

    let name: String
    let server: TestGateway
    private let check: WebhookCheck
    private let relay: RunningRelay
    private let client: ReconnectingClient
    private let anyone: ReconnectingClient

    /// - Parameter url: the webhook URL, if it is not that of the server.
    init(_ name: String, at url: String? = nil, _ server: TestGateway, of relay: RunningRelay) async throws {
        self.name = name
        self.server = server
        self.relay = relay
        let caller = try await relay.website(
            name, "--answers", "certificate", "--login-limit", "1000", "--push-limit", "100", "--guesses", "1",
            "--webhook", url ?? "\(server.url)/hook")
        let files = (try #require(caller.certificatePath), try #require(caller.keyPath))
        client = try ReconnectingClient(
            relay, certificate: try TextFile.bytes(files.0), key: Secret(try TextFile.bytes(files.1)))
        anyone = try ReconnectingClient(relay)
        let text = try TextFile.read(relay.directory("\(name).secret"))
        check = WebhookCheck(
            secrets: [try #require(WebhookSecret(text.prefix { $0 != "\n" }))],
            // The test may read it much later.
            tolerance: .seconds(86_400))
    }

    // MARK: Its users and logins

    /// Enrols a user with a phone, of which the website is notified too.
    func enrol(_ username: String) async throws -> Phone {
        let registered = try await client.send("POST", "/register", ["username": .string(username)])
        let (token, code) = try Fixture.registered(registered)
        let device = try TestPhone(pushToken: Fixture.pushToken())
        let proof = try device.proof(
            token: token, code: code, origin: relay.origin, website: name, at: SystemTime().now())
        let reply = try await anyone.send(
            "POST", "/verify",
            [
                "id_token": .string(token), "dev_token": .string(device.pushToken), "activation_code": .string(code),
                "proof": .string(proof), "platform": "ios",
            ])
        try #require(reply.status == 200, "\(reply)")
        let certificate = try #require(reply["certificate"])
        return Phone(
            device: try #require(reply["device"]), pushToken: device.pushToken,
            client: try ReconnectingClient(relay, certificate: Array(certificate.utf8), key: try device.key.pem()))
    }

    func login(_ username: String) async throws -> Login {
        try Login(try await client.send("POST", "/login", ["username": .string(username)]))
    }

    /// Runs a login that the phone approves.
    func decide(_ username: String, by phone: Phone) async throws -> String {
        let login = try await login(username)
        let answer = try await phone.approve(login)
        try #require(answer["login"] == "success", "\(answer)")
        return login.challenge
    }

    /// Runs such a login, and returns the time from the phone's answer to the webhook.
    func timed(_ username: String, by phone: Phone) async throws -> (challenge: String, time: Duration) {
        let login = try await login(username)
        let start = SystemTime().instant()
        let answer = try await phone.approve(login)
        try #require(answer["login"] == "success", "\(answer)")
        await hears("login.decided", of: login.challenge)
        return (login.challenge, SystemTime().instant() - start)
    }

    // MARK: Received webhooks

    var heard: [Heard] { server.asked.map(read) }

    func heard(_ type: String, of challenge: String? = nil) -> [Heard] {
        heard.filter { $0.type == type && (challenge == nil || $0.challenge == challenge) }
    }

    /// Returns when this webhook has arrived `times` times.
    func hears(_ type: String, of challenge: String, times: Int = 1) async {
        while true {
            // Counted before the check, so that none arrives in between unnoticed.
            let count = server.asked.count
            if heard(type, of: challenge).count >= times { return }
            await server.isAsked(count + 1)
        }
    }

    /// Returns the event type and the challenge of a webhook.
    static func subject(_ asked: TestGateway.Asked) -> (type: String, challenge: String?) {
        let json = (try? JSONReader.read(Array(asked.body.utf8)).object) ?? [:]
        return (json["type"]?.string ?? "none", json["data"]?.object?["challenge"]?.string)
    }

    private func read(_ asked: TestGateway.Asked) -> Heard {
        let (type, challenge) = Self.subject(asked)
        let fields = asked.fields.map { (name: $0.key, value: $0.value) }
        let head = try? check.verify(fields, body: Array(asked.body.utf8), at: SystemTime().now())
        return Heard(
            id: head?.id.text ?? "none", type: type, challenge: challenge, body: asked.body,
            isTrue: head != nil && asked.method == "POST")
    }
}

extension Fixture {
    /// Returns when no webhook is left to deliver.
    func drained() async throws {
        while try relay.count("SELECT count(*) FROM outbox WHERE kind = 'webhook'") > 0 {
            await Clients.loop.perform { await Clients.loop.sleep(for: .milliseconds(50)) }
        }
    }
}
