import Bytes
import Crypto
import JSON
import TestSupport
import Testing
import World

/// A website of a cluster that receives webhooks, with several clients from which it calls.
struct ClusterShop: Sendable {
    static let name = "called"

    let cluster: RunningCluster
    let receiver: TestWebhookServer
    let clients: [MultiRelayClient]
    /// A client without a certificate.
    private let anyone: MultiRelayClient

    /// - Parameter clients: the number of clients, each with separate connections.
    static func open(_ cluster: RunningCluster, clients: Int, _ chance: SeededRandomness) async throws -> ClusterShop {
        let receiver = try await TestWebhookServer()
        let into = cluster.directory.path
        // No user may reach a limit, and no login may expire.
        try await cluster.tool([
            "website", "add", name, "--out", into, "--webhook", receiver.url, "--login-limit", "1000", "--push-limit",
            "100",
            "--guesses", "100", "--lifetime", "600", "--push-deadline", "300", "--code-deadline", "none",
        ])
        let secret = try TextFile.read("\(into)/\(name).secret")
        try receiver.learn(String(secret.prefix { $0 != "\n" }))
        return ClusterShop(
            cluster: cluster, receiver: receiver, clients: try (0..<clients).map { _ in try client(cluster, chance) },
            anyone: try MultiRelayClient(cluster, chance))
    }

    /// Returns another client, so that its requests do not delay those of the others.
    func client(_ chance: SeededRandomness) throws -> MultiRelayClient { try Self.client(cluster, chance) }

    private static func client(_ cluster: RunningCluster, _ chance: SeededRandomness) throws -> MultiRelayClient {
        let files = cluster.directory.path
        return try MultiRelayClient(
            cluster, chance, certificate: try TextFile.bytes("\(files)/\(name).pem"),
            key: Secret(try TextFile.bytes("\(files)/\(name).key")))
    }

    /// Enrols a user with a phone. Each request may go to another relay.
    func enrol(_ username: String, at client: MultiRelayClient, _ chance: SeededRandomness) async throws -> CarriedPhone
    {
        let registered = try await client.insist("POST", "/register", ["username": .string(username)], key: username)
        let (token, code) = try Fixture.registered(registered.reply)
        let key = try TestPhone(pushToken: Fixture.pushToken())
        let proof = try key.proof(
            token: token, code: code, origin: cluster.origin, website: Self.name, at: SystemTime().now())
        let body: JSONObject = [
            "id_token": .string(token), "dev_token": .string(key.pushToken), "activation_code": .string(code),
            "proof": .string(proof), "platform": "ios",
        ]
        let bound = try await anyone.insist("POST", "/verify", body).reply
        try #require(bound.status == 200, "\(bound)")
        let certificate = Array(try #require(bound["certificate"]).utf8)
        return CarriedPhone(
            device: try #require(bound["device"]), key: key, origin: cluster.origin,
            roamer: try MultiRelayClient(cluster, chance, certificate: certificate, key: try key.key.pem()))
    }

    /// Asks any relay for the result of a login, until it is known.
    static func result(of login: Login, at client: MultiRelayClient) async throws -> Reply {
        while true {
            let challenge: JSONObject = ["challenge": .string(login.challenge)]
            let reply = try await client.insist("POST", "/auth", challenge, wait: 60).reply
            try #require(reply.status == 200 && reply["challenge"] == login.challenge, "\(reply)")
            if reply["login"] != "wait" { return reply }
        }
    }
}

/// A phone that uses any relay.
struct CarriedPhone: Sendable {
    let device: String
    let key: TestPhone
    let origin: String
    let roamer: MultiRelayClient

    /// Approves or denies the login, with the number that the website shows.
    func decide(_ login: Login, approves: Bool) async throws {
        // Every relay knows the challenge, because the website already has its answer.
        let reply = try await roamer.insist("POST", "/pending", [:]).reply
        let pending = (reply.json["pending"]?.array ?? []).compactMap(\.object)
        let its = try #require(pending.first { $0["challenge"]?.string == login.challenge }, "\(login): \(reply)")
        let shown = TestPhone.Shown(
            challenge: login.challenge, nonce: try #require(its["nonce"]?.string),
            context: try #require(its["context"]?.string.flatMap { Base64URL.decode($0) }))
        let answer = try key.decision(
            approves ? "approve" : "deny", about: shown, device: device, origin: origin, number: login.number,
            at: SystemTime().now())
        let body: JSONObject = ["challenge": .string(login.challenge), "answer": .string(answer)]
        let taken = try await roamer.insist("POST", approves ? "/success" : "/failure", body)
        // 409: an earlier attempt was accepted, and its answer lost.
        let isTaken = taken.reply.status == 200 || taken.unsure > 0 && taken.reply["code"] == "already_decided"
        #expect(isTaken && taken.reply["login"] == (approves ? "success" : "failure"), "\(taken)")
    }
}
