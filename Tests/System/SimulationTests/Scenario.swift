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

/// Websites and phones around a relay that is killed again and again, all in virtual time. Every actor behaves as its
/// guide tells it: a website repeats a request under its Idempotency-Key, a phone posts its decision until it knows.
final class Scenario: PushCourier, @unchecked Sendable {
    // Guard: everything here happens on the one thread that drives the world; `state` is locked all the same, because
    // closures that cross loops must be Sendable.

    struct Login {
        var challenge: String?
        var number: String?
        var decided: Decision?
        /// What the relay told the phone.
        var acknowledged: String?
        /// What the relay told the website.
        var told: String?
    }

    private struct State {
        var logins: [String: Login] = [:]
        var byChallenge: [String: String] = [:]
        var trace: [String] = []
        var finished = 0
    }

    private let world: SimulatedWorld
    let calls: WebhookEndpoint
    private(set) var relays: SimulatedRelays?
    private let clients: EventLoop
    private let state = Mutex(State())
    private var phones: [String: (certificate: ClientCertificate, token: String)] = [:]
    private let websiteKey = SHA256.hash(Array("shop".utf8))

    init(seed: UInt64) throws {
        world = SimulatedWorld(seed: seed)
        clients = world.loop("clients")
        calls = WebhookEndpoint(world)
        relays = try SimulatedRelays(world, pushes: self, calls: calls)
    }

    var trace: [String] { state.withLock { $0.trace } + calls.trace }
    var logins: [Login] { state.withLock { Array($0.logins.values) } }

    private func note(_ what: String) {
        let at = world.time.instant().nanoseconds / 1_000_000
        state.withLock { $0.trace.append("\(at) \(what)") }
    }

    private func chance(_ bound: UInt64) -> UInt64 { world.chance.number(below: bound) }
    private func milliseconds(_ range: Range<Int64>) -> Duration { world.chance.milliseconds(range) }

    // MARK: The course of events

    /// Everything, to the end. False when something never ended.
    func play(users: Int, logins: Int, kills: Int) throws -> Bool {
        guard let relays else { return false }
        try relays.start()
        try addWebsite(relays)
        for user in 0..<users { onClients { await self.live(user: "user-\(user)", logins: logins) } }
        onClients { await self.disturb(kills) }
        onClients { await self.calls.disturb(on: self.clients) }
        let all = users + 2
        let ended = world.run(for: .seconds(7200)) { self.state.withLock { $0.finished == all } }
        // The last expiries and leases.
        _ = world.run(for: .seconds(700)) { false }
        // What the website did not take is tried again, at longer and longer intervals.
        calls.isWell = true
        let asked = state.withLock { $0.byChallenge.keys.sorted() }
        let told = world.run(for: .seconds(30 * 3600)) { asked.allSatisfy { self.calls.hasHeard(of: $0) } }
        _ = world.run(for: .seconds(60)) { false }
        return ended && told
    }

    /// What an operator would ask the store in the end.
    func ask(_ sql: String) throws -> Int64 {
        guard let store = relays?.store else { throw RigFailure("there is no store") }
        let script = Script("test", reads: [BoundStatement(Statement(sql))])
        let answer = Mutex<Result<[Rows], StoreFailure>?>(nil)
        clients.post { [clients] in
            clients.spawn {
                let outcome: Result<[Rows], StoreFailure>
                do throws(StoreFailure) {
                    outcome = .success(try await store.run(script))
                } catch {
                    outcome = .failure(error)
                }
                answer.withLock { $0 = outcome }
            }
        }
        _ = world.run(for: .seconds(60)) { answer.withLock { $0 != nil } }
        guard let rows = try answer.withLock({ $0 })?.get() else { throw RigFailure("the store did not answer") }
        return try rows.row(0).integer(0)
    }

    private func addWebsite(_ relays: SimulatedRelays) throws {
        guard let relay = relays.process?.relay else { return }
        let id: WebsiteID = relay.operations.draw()
        let sealed = try RelayRig.sealer().seal(
            WebhookSecrets(current: RelayRig.webhookSecret).text.reveal(),
            associated: WebhookSecretSeal.associated(website: id), randomness: world.chance)
        let secrets = WebhookEndpoints.Secrets(sealed: sealed, sealedBy: try RelayRig.sealer().currentID)
        let new = Websites.New(
            id: id, name: "shop", displayName: "The Shop", policy: #"{"answers":"certificate"}"#,
            callback: WebhookEndpoints.New(url: "https://shop.example/hook", secrets: secrets),
            keyThumbprint: websiteKey, createdAt: world.time.now())
        let query = Websites.add(new, as: relay.operations.new())
        let store = relays.store
        let added = Mutex(false)
        clients.post { [clients] in
            clients.spawn {
                let done = (try? await store.run(query)) == true
                added.withLock { $0 = done }
            }
        }
        guard world.run(for: .seconds(60), until: { added.withLock { $0 } }) else {
            throw RigFailure("the website was not added")
        }
    }

    private func onClients(_ body: @escaping @Sendable () async -> Void) {
        clients.post { [clients] in
            clients.spawn {
                await body()
                self.state.withLock { $0.finished += 1 }
            }
        }
    }

    private func disturb(_ kills: Int) async {
        for _ in 0..<kills {
            await clients.sleep(for: milliseconds(20..<2_500))
            note("kill")
            relays?.kill()
            await clients.sleep(for: milliseconds(1..<1_500))
            note("start")
            try? relays?.start()
        }
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

    /// Until there is an answer that a repetition would not change.
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
            // The answer was lost and is not shown again: ask for another code, as the guide says.
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
            guard let answer, answer.status == 200, let told = answer.body["login"]?.string else {
                await clients.sleep(for: milliseconds(50..<500))
                continue
            }
            guard told != "wait" else { continue }
            note("\(key) told \(told) \(answer.body["reason"]?.string ?? "-")")
            state.withLock { $0.logins[key]?.told = told }
            return
        }
    }

    // MARK: The phone

    /// The push service: what is accepted may be lost, what is ambiguous may arrive.
    func send(_ push: Push) async -> PushOutcome {
        let loop = EventLoop.current
        await loop?.sleep(for: milliseconds(1..<400))
        let dice = chance(10)
        if dice < 8 {
            clients.post { [clients] in
                clients.spawn { await self.decide(push) }
            }
        }
        switch dice {
        case 0...5, 8: return .accepted
        case 6: return .ambiguous("timeout")
        default: return .retryAfter(.seconds(2), reason: "TooManyRequests")
        }
    }

    private func decide(_ push: Push) async {
        guard let phone = phones[push.deviceToken] else { return }
        await clients.sleep(for: milliseconds(10..<4_000))
        let challenge = push.challenge.text
        let decision: Decision = chance(4) == 0 ? .deny : .approve
        // One phone, one decision: a message that comes twice shows what is shown already.
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
