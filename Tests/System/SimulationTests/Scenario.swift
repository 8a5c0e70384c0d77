import Bytes
import Crypto
import DeliveryOutcomes
import Domain
import EventLoop
import HTTP
import JSON
import Relay
import Storage
import Synchronization
import TestSupport
import Webhooks
import World

/// A website and its users' phones around a relay that is killed repeatedly, all in virtual time.
///
/// Purpose: the scenario shows that a crash of the relay loses nothing and does nothing twice.
/// Every client behaves as its guide requires. The website repeats a request under its idempotency
/// key, and a phone posts its decision until it has an answer.
///
/// The seed decides all faults:
///
/// - The relay is killed and started again.
/// - Answers arrive late, or are lost when the relay is killed.
/// - The push service loses pushes, or reports another outcome than the real one. At times it cannot
///   be reached.
/// - The webhook endpoint is down at times, or fails (`WebhookEndpoint`).
///
/// The store survives each kill, as a database does.
///
/// Invariants, which `SimulationTests.swift` checks at the end:
///
/// - Every login ends, and it ends once.
/// - Website, phone and webhooks get the same result.
/// - No login succeeds without an approval by its phone.
/// - The outbox holds no work, except webhooks that wait for another attempt.
/// - The same seed gives the same trace.
final class Scenario: PushCourier, KilledScenario, @unchecked Sendable {
    // Guard for `@unchecked Sendable`: everything runs on the one thread that drives the world.
    // `state` has a lock nevertheless, because closures that cross loops must be Sendable.

    struct Login {
        var challenge: String?
        var number: String?
        var decided: Decision?
        /// The result that the relay reported to the phone.
        var acknowledged: String?
        /// The result that the relay reported to the website.
        var result: String?
    }

    private struct State {
        var logins: [String: Login] = [:]
        var byChallenge: [String: String] = [:]
        var trace: [String] = []
        var finished = 0
    }

    let world: SimulatedWorld
    let webhooks: WebhookEndpoint
    private(set) var relays: SimulatedRelays?
    let clients: EventLoop
    private let state = Mutex(State())
    private var phones: [String: (certificate: ClientCertificate, token: String)] = [:]
    private let websiteKey = SHA256.hash(Array("shop".utf8))

    init(seed: UInt64) throws {
        world = SimulatedWorld(seed: seed)
        clients = world.loop("clients")
        webhooks = WebhookEndpoint(world)
        relays = try SimulatedRelays(world, pushes: self, webhooks: webhooks)
    }

    var trace: [String] { state.withLock { $0.trace } + webhooks.trace }
    var logins: [Login] { state.withLock { Array($0.logins.values) } }

    func finish() { state.withLock { $0.finished += 1 } }

    func note(_ what: String) {
        let at = world.time.instant().nanoseconds / 1_000_000
        state.withLock { $0.trace.append("\(at) \(what)") }
    }

    private func chance(_ bound: UInt64) -> UInt64 { world.chance.number(below: bound) }

    // MARK: The run

    /// Runs the whole scenario.
    ///
    /// - Returns: false if a client or a webhook did not come to its end.
    func run(users: Int, logins: Int, kills: Int) throws -> Bool {
        guard let relays else { return false }
        try relays.start()
        try addWebsite(relays)
        for user in 0..<users { onClients { await self.live(user: "user-\(user)", logins: logins) } }
        onClients { await self.disturb(kills) }
        onClients { await self.webhooks.disturb(on: self.clients) }
        let all = users + 2
        let ended = world.run(for: .seconds(7200)) { self.state.withLock { $0.finished == all } }
        // Wait for the last expiries and leases.
        _ = world.run(for: .seconds(700)) { false }
        // The relay repeats refused webhooks at growing intervals, so this needs hours of virtual
        // time.
        webhooks.isWell = true
        let asked = state.withLock { $0.byChallenge.keys.sorted() }
        let areReported = world.run(for: .seconds(30 * 3600)) { asked.allSatisfy { self.webhooks.hasHeard(of: $0) } }
        _ = world.run(for: .seconds(60)) { false }
        return ended && areReported
    }

    /// Runs a query that returns one number, at the end of the scenario.
    func ask(_ sql: String) throws -> Int64 { try world.number(of: sql, in: relays, on: clients) }

    private func addWebsite(_ relays: SimulatedRelays) throws {
        guard let relay = relays.process?.relay else { return }
        let id: WebsiteID = relay.operations.draw()
        let sealed = try RelayRig.sealer().seal(
            WebhookSecrets(current: RelayRig.webhookSecret).text.reveal(),
            associated: WebhookSecretSeal.associated(website: id), randomness: world.chance)
        let secrets = WebhookEndpoints.Secrets(sealed: sealed, sealedBy: try RelayRig.sealer().currentID)
        let new = Websites.New(
            id: id, name: "shop", displayName: "The Shop", policy: #"{"answers":"certificate"}"#,
            webhook: WebhookEndpoints.New(url: "https://shop.example/hook", secrets: secrets),
            keyThumbprint: websiteKey, createdAt: world.time.now())
        try world.add(new, to: relays, by: relay, on: clients)
    }

    // MARK: The network

    private func post(
        _ path: String, _ body: JSONObject, as certificate: ClientCertificate?, key: String? = nil,
        prefer: String? = nil
    ) async -> (status: Int, body: JSONObject)? {
        guard let process = relays?.process else {
            await clients.sleep(for: .milliseconds(200))
            return nil
        }
        var fields = Fields([Fields.Field("content-type", "application/json")])
        if let key { fields.add("idempotency-key", key) }
        if let prefer { fields.add("prefer", prefer) }
        let request = Request(
            method: "POST", path: path, fields: fields, body: JSONWriter.write(.object(body)), certificate: certificate)
        let response = await SimulatedNetwork.send(
            request, to: process.api, on: process.loop, from: clients,
            latency: { self.milliseconds(1..<50) }, timeout: .seconds(20))
        guard let response, let object = (try? JSONReader.read(response.body))?.object else { return nil }
        return (response.status, object)
    }

    /// Repeats a request until it has a final answer: no 5xx, and no conflict with an earlier
    /// attempt that is still running.
    private func insist(
        _ path: String, _ body: JSONObject, as certificate: ClientCertificate?, key: String? = nil
    ) async -> (status: Int, body: JSONObject) {
        while true {
            if let answer = await post(path, body, as: certificate, key: key), answer.status < 500 {
                let again = answer.status == 409 && answer.body["code"]?.string == "conflict" && key != nil
                if !again { return answer }
            }
            await clients.sleep(for: milliseconds(50..<1_000))
        }
    }

    private var website: ClientCertificate {
        ClientCertificate(authority: .websites, uris: ["twoefay:website:shop"], keyThumbprint: websiteKey)
    }

    // MARK: A user, and the website on its behalf

    private func live(user: String, logins: Int) async {
        guard let token = await enrol(user) else { return note("\(user) could not enrol") }
        for number in 0..<logins {
            let key = "\(user)-login-\(number)"
            state.withLock { $0.logins[key] = Login() }
            let body: JSONObject = ["token": .string(token), "expires_in": .integer(60), "request": .string(key)]
            let asked = await insist("/login", body, as: website, key: key)
            guard let challenge = asked.body["challenge"]?.string else {
                note("\(key) refused \(asked.status)")
                continue
            }
            note("\(key) asked \(challenge)")
            state.withLock { state in
                state.logins[key]?.challenge = challenge
                state.logins[key]?.number = asked.body["number"]?.string
                state.byChallenge[challenge] = key
            }
            await learn(key, challenge)
            await clients.sleep(for: milliseconds(0..<5_000))
        }
    }

    private func enrol(_ user: String) async -> String? {
        var code: String?
        let registered = await insist(
            "/register", ["username": .string(user)], as: website, key: "\(user)-register")
        var token = registered.body["token"]?.string
        code = registered.body["activation"]?.object?["code"]?.string
        if token == nil {
            // The answer was lost, and the relay does not show it again. The website requests
            // another code, as the guide requires.
            let path = "/user/\(user)/activation"
            var number = 0
            while code == nil {
                number += 1
                let again = await insist(path, [:], as: website, key: "\(user)-activation-\(number)")
                code = again.body["code"]?.string
                token = again.body["uri"]?.string.flatMap(Self.token)
            }
        }
        guard let token, let code,
            let phone = try? TestPhone(
                pushToken: "push-\(user)", key: try P256PrivateKey.generate(world.chance)),
            let proof = try? phone.proof(
                token: token, code: code, origin: RelayRig.origin, website: "shop", at: world.time.now())
        else { return nil }
        let body: JSONObject = [
            "id_token": .string(token), "dev_token": .string(phone.pushToken), "activation_code": .string(code),
            "proof": .string(proof),
        ]
        let bound = await insist("/verify", body, as: nil)
        guard let id = bound.body["device"]?.string.flatMap({ DeviceID($0) }) else { return nil }
        phones[phone.pushToken] = (phone.certificate(device: id), token)
        note("\(user) bound \(id)")
        return token
    }

    private static func token(in uri: String) -> String? {
        uri.split(separator: "&").first { $0.hasPrefix("token=") }.map { String($0.dropFirst(6)) }
    }

    private func learn(_ key: String, _ challenge: String) async {
        while true {
            let answer = await post("/auth", ["challenge": .string(challenge)], as: website, prefer: "wait=15")
            guard let answer, answer.status == 200, let result = answer.body["login"]?.string else {
                await clients.sleep(for: milliseconds(50..<500))
                continue
            }
            guard result != "wait" else { continue }
            note("\(key) result \(result) \(answer.body["reason"]?.string ?? "-")")
            state.withLock { $0.logins[key]?.result = result }
            return
        }
    }

    // MARK: The phone

    /// Acts as the push service. An accepted push may be lost, and a push with another outcome may
    /// arrive.
    func send(_ push: Push) async -> DeliveryOutcome {
        let loop = EventLoop.current
        await loop?.sleep(for: milliseconds(1..<400))
        if service(of: push) != .configured(host: "push.example", isUnreachable: false) {
            return .unavailable(after: nil, reason: "connection refused")
        }
        let dice = chance(10)
        if dice < 8 {
            clients.post { [clients] in
                clients.spawn { await self.decide(push) }
            }
        }
        switch dice {
        case 0...5, 8: return .accepted(by: nil)
        case 6: return .ambiguous("timeout")
        default: return .retry(after: .seconds(2), reason: "TooManyRequests")
        }
    }

    /// The push service is away in the last of every three minutes.
    func service(of push: Push) -> PushService {
        let minute = world.time.instant().nanoseconds / 60_000_000_000
        return .configured(host: "push.example", isUnreachable: minute % 3 == 2)
    }

    private func decide(_ push: Push) async {
        guard let phone = phones[push.deviceToken] else { return }
        await clients.sleep(for: milliseconds(10..<4_000))
        let challenge = push.challenge.text
        let decision: Decision = chance(4) == 0 ? .deny : .approve
        // A phone decides only once. A repeated push shows a challenge that the phone already
        // shows.
        let number = state.withLock { state -> String?? in
            guard let key = state.byChallenge[challenge], state.logins[key]?.decided == nil else { return nil }
            state.logins[key]?.decided = decision
            return .some(state.logins[key]?.number)
        }
        guard let number else { return }
        var body: JSONObject = ["challenge": .string(challenge)]
        if decision == .approve, let number { body.set("number", .string(number)) }
        let path = decision == .approve ? "/success" : "/failure"
        let answer = await insist(path, body, as: phone.certificate)
        let result = answer.body["login"]?.string ?? answer.body["code"]?.string ?? "?"
        note("\(challenge) \(decision) \(result)")
        state.withLock { state in
            guard answer.status == 200, let key = state.byChallenge[challenge] else { return }
            state.logins[key]?.acknowledged = result
        }
    }
}
