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
import World

/// Phones with PINs around a relay that is killed repeatedly, all in virtual time.
///
/// Purpose: the scenario shows that a crash of the relay neither loses nor repeats a count of wrong
/// PINs and PUKs, and changes no PIN twice. Each person types right and wrong PINs by the seed, and
/// resets a locked one with a right or a wrong PUK. Each phone sends the same bytes until it has an
/// answer, as the protocol page requires.
///
/// A model beside each phone counts what was sent. Each answer and, at the end, each row of the
/// store must be as the model says (`faults`).
final class PINScenario: PushCourier, KilledScenario, @unchecked Sendable {
    // Guard for `@unchecked Sendable`: everything runs on the one thread that drives the world.
    // `state` has a lock nevertheless, because closures that cross loops must be Sendable.

    /// The PIN of a phone as it must be at the relay.
    struct Model {
        let device: DeviceID
        let certificate: ClientCertificate
        let phone: TestPhone
        var pin: P256PrivateKey
        var puk: P256PrivateKey
        var version = 0
        var failures = 0
        var pukFailures = 0
    }

    private struct State {
        var models: [Model] = []
        var trace: [String] = []
        var faults: [String] = []
        /// How often each answer came, for the proof that the scenario covers them.
        var seen: [String: Int] = [:]
        var finished = 0
    }

    let world: SimulatedWorld
    private(set) var relays: SimulatedRelays?
    let clients: EventLoop
    private let state = Mutex(State())
    private let websiteKey = SHA256.hash(Array("shop".utf8))
    private let audience = "\(RelayRig.origin)#shop"

    init(seed: UInt64) throws {
        world = SimulatedWorld(seed: seed)
        clients = world.loop("clients")
        relays = try SimulatedRelays(world, pushes: self)
    }

    var trace: [String] { state.withLock { $0.trace } }
    var faults: [String] { state.withLock { $0.faults } }
    var seen: [String: Int] { state.withLock { $0.seen } }

    func finish() { state.withLock { $0.finished += 1 } }

    func note(_ what: String) {
        let at = world.time.instant().nanoseconds / 1_000_000
        state.withLock { $0.trace.append("\(at) \(what)") }
    }

    private func chance(_ bound: UInt64) -> UInt64 { world.chance.number(below: bound) }

    /// The phones find their challenges by `/pending`, so no push needs to arrive.
    func send(_ push: Push) async -> DeliveryOutcome { .accepted(by: nil) }

    // MARK: The run

    /// Runs the whole scenario. Returns false if a person did not come to an end.
    func run(users: Int, logins: Int, kills: Int) throws -> Bool {
        guard let relays else { return false }
        try relays.start()
        try addWebsite(relays)
        for user in 0..<users { onClients { await self.live(user: "user-\(user)", logins: logins) } }
        onClients { await self.disturb(kills) }
        let hasEnded = world.run(for: .seconds(7200)) { self.state.withLock { $0.finished == users + 1 } }
        try compareStore()
        return hasEnded
    }

    private func addWebsite(_ relays: SimulatedRelays) throws {
        guard let relay = relays.process?.relay else { return }
        let new = Websites.New(
            id: relay.operations.draw(), name: "shop", displayName: "The Shop",
            policy: #"{"answers":"signed","pin":"required","number":"0","login-limit":"1000","push-limit":"100"}"#,
            webhook: nil, keyThumbprint: websiteKey, createdAt: world.time.now())
        try world.add(new, to: relays, by: relay, on: clients)
    }

    /// Compares the rows of the phones with their models.
    private func compareStore() throws {
        for model in state.withLock({ $0.models }) {
            let row = "FROM device WHERE id = x'\(model.device.text)'"
            let stored = try ["pin_version", "pin_failures", "puk_failures"].map { try ask("SELECT \($0) \(row)") }
            let expected = [model.version, model.failures, model.pukFailures].map { Int64($0) }
            if stored != expected { fault("the store has \(stored), not \(expected)") }
        }
    }

    /// Runs a query that returns one number, at the end of the scenario.
    func ask(_ sql: String) throws -> Int64 { try world.number(of: sql, in: relays, on: clients) }

    private func fault(_ what: String) { state.withLock { $0.faults.append(what) } }

    // MARK: The network

    /// Sends the same bytes until there is a final answer: no 5xx, and no request to wait.
    private func insist(
        _ path: String, _ body: JSONObject, as certificate: ClientCertificate?, key: String? = nil
    ) async -> (status: Int, body: JSONObject) {
        while true {
            if let process = relays?.process {
                var fields = Fields([Fields.Field("content-type", "application/json")])
                if let key { fields.add("idempotency-key", key) }
                let request = Request(
                    method: "POST", path: path, fields: fields, body: JSONWriter.write(.object(body)),
                    certificate: certificate)
                let response = await SimulatedNetwork.send(
                    request, to: process.api, on: process.loop, from: clients,
                    latency: { self.milliseconds(1..<50) }, timeout: .seconds(20))
                if let response, response.status < 500, response.status != 429,
                    let object = (try? JSONReader.read(response.body))?.object
                {
                    let isRunning = response.status == 409 && object["code"] == "conflict" && key != nil
                    if !isRunning { return (response.status, object) }
                }
            }
            await clients.sleep(for: milliseconds(50..<1_000))
        }
    }

    private var website: ClientCertificate {
        ClientCertificate(authority: .websites, uris: ["twoefay:website:shop"], keyThumbprint: websiteKey)
    }

    // MARK: A person

    private func live(user: String, logins: Int) async {
        guard var model = await enrol(user), await set(&model) else { return fault("\(user) could not enrol") }
        for number in 0..<logins {
            let key = "\(user)-login-\(number)"
            let asked = await insist("/login", ["username": .string(user)], as: website, key: key)
            guard let challenge = asked.body["challenge"]?.string else {
                fault("\(key) refused \(asked.status)")
                continue
            }
            await answer(challenge, &model, key)
            await clients.sleep(for: milliseconds(0..<2_000))
        }
        let last = model
        state.withLock { $0.models.append(last) }
    }

    private func enrol(_ user: String) async -> Model? {
        let registered = await insist("/register", ["username": .string(user)], as: website, key: "\(user)-register")
        var (code, token) = (
            registered.body["activation"]?.object?["code"]?.string, registered.body["token"]?.string
        )
        var number = 0
        while code == nil || token == nil {
            // The answer was lost, and the relay does not show it again.
            number += 1
            let again = await insist(
                "/user/\(user)/activation", [:], as: website, key: "\(user)-activation-\(number)")
            code = again.body["code"]?.string
            let uri = again.body["uri"]?.string?.split(separator: "&") ?? []
            token = uri.first { $0.hasPrefix("token=") }.map { String($0.dropFirst(6)) }
        }
        guard let token, let code, let key = newKey(), let pin = newKey(), let puk = newKey(),
            let phone = try? TestPhone(pushToken: "push-\(user)", key: key),
            let proof = try? phone.proof(
                token: token, code: code, origin: RelayRig.origin, website: "shop", at: world.time.now())
        else { return nil }
        let body: JSONObject = [
            "id_token": .string(token), "dev_token": .string(phone.pushToken), "activation_code": .string(code),
            "proof": .string(proof),
        ]
        let bound = await insist("/verify", body, as: nil)
        guard let id = bound.body["device"]?.string.flatMap({ DeviceID($0) }) else { return nil }
        return Model(device: id, certificate: phone.certificate(device: id), phone: phone, pin: pin, puk: puk)
    }

    private func newKey() -> P256PrivateKey? { try? P256PrivateKey.generate(world.chance) }

    // MARK: Changes of the PIN

    private func set(_ model: inout Model) async -> Bool {
        guard let body = statement("set", model, pin: model.pin, puk: model.puk, signer: nil) else { return false }
        let answer = await insist("/device/pin", body, as: model.certificate)
        model.version = 1
        expect(answer, status: 200, code: nil, "set")
        return answer.status == 200
    }

    private func statement(
        _ change: String, _ model: Model, pin: P256PrivateKey, puk: P256PrivateKey?,
        signer: (name: String, key: P256PrivateKey)?
    ) -> JSONObject? {
        var claims: JSONObject = [
            "v": 1, "aud": .string(audience), "change": .string(change),
            "version": .integer(Int64(model.version + 1)), "pin": .object(pin.publicKey.jwk),
            "iat": .integer(world.time.now().seconds),
        ]
        claims.set("puk", (puk?.publicKey.jwk).map { .object($0) })
        guard
            let signed = try? JWS.sign(
                header: ["typ": "twoefay-pin+jwt", "kid": .string(model.device.text)],
                payload: JSONWriter.write(.object(claims)), key: model.phone.key)
        else { return nil }
        var body: JSONObject = ["pin": .string(signed)]
        if let signer { body.set(signer.name, signature(over: signed, by: signer.key)) }
        return body
    }

    private func signature(over compact: String, by key: P256PrivateKey) -> JSONValue? {
        let input = compact.split(separator: ".").dropLast().joined(separator: ".")
        return (try? key.sign(Array(input.utf8))).map { .string(Base64URL.encode($0)) }
    }

    /// Resets a locked PIN. The person may mistype the PUK, but stops before it is locked.
    private func reset(_ model: inout Model) async {
        guard let pin = newKey(), let puk = newKey(), let wrong = newKey() else { return }
        if model.pukFailures < PhonePIN.pukTries - 1, chance(2) == 0 {
            guard
                let body = statement("reset", model, pin: pin, puk: puk, signer: ("puk_signature", wrong))
            else { return }
            let answer = await insist("/device/pin", body, as: model.certificate)
            model.pukFailures += 1
            expect(
                answer, status: 403, code: "puk_wrong", left: PhonePIN.pukTries - model.pukFailures, "wrong PUK")
        }
        guard let body = statement("reset", model, pin: pin, puk: puk, signer: ("puk_signature", model.puk)) else {
            return
        }
        let answer = await insist("/device/pin", body, as: model.certificate)
        expect(answer, status: 200, code: nil, "reset")
        (model.pin, model.puk, model.version) = (pin, puk, model.version + 1)
        (model.failures, model.pukFailures) = (0, 0)
    }

    private func change(_ model: inout Model) async {
        guard let pin = newKey(),
            let body = statement("change", model, pin: pin, puk: nil, signer: ("pin_signature", model.pin))
        else { return }
        let answer = await insist("/device/pin", body, as: model.certificate)
        expect(answer, status: 200, code: nil, "change")
        (model.pin, model.version, model.failures) = (pin, model.version + 1, 0)
    }

    // MARK: Answers

    private func answer(_ challenge: String, _ model: inout Model, _ login: String) async {
        if model.failures < PhonePIN.tries, chance(6) == 0 { await change(&model) }
        while true {
            guard let listed = await pending(challenge, model) else { return note("\(login) expired") }
            if model.failures == PhonePIN.tries {
                let locked = await approve(challenge, listed, model, model.pin)
                expect(locked, status: 403, code: "pin_locked", "locked")
                await reset(&model)
                continue
            }
            guard chance(5) < 2, let wrong = newKey() else { break }
            let refused = await approve(challenge, listed, model, wrong)
            // A challenge that ends before its answer counts nothing.
            if refused.body["code"] == "already_decided" { return note("\(login) expired") }
            model.failures += 1
            let left = PhonePIN.tries - model.failures
            expect(
                refused, status: 403, code: left == 0 ? "pin_locked" : "pin_wrong", left: left == 0 ? nil : left,
                "wrong PIN")
        }
        guard let listed = await pending(challenge, model) else { return note("\(login) expired") }
        let approved = await approve(challenge, listed, model, model.pin)
        let result = approved.body["login"]?.string ?? "-"
        note("\(login) \(approved.status) \(result)")
        if result == "success" {
            model.failures = 0
            state.withLock { $0.seen["success", default: 0] += 1 }
        } else if approved.body["code"] != "already_decided" {
            fault("\(login): the right PIN got \(approved)")
        }
    }

    /// Returns what the phone shows of the challenge; nil if it has expired.
    private func pending(_ challenge: String, _ model: Model) async -> JSONObject? {
        let answer = await insist("/pending", [:], as: model.certificate)
        let listed = answer.body["pending"]?.array?.compactMap(\.object) ?? []
        return listed.first { $0["challenge"]?.string == challenge }
    }

    private func approve(
        _ challenge: String, _ listed: JSONObject, _ model: Model, _ pin: P256PrivateKey
    ) async -> (status: Int, body: JSONObject) {
        let context = Base64URL.decode(listed["context"]?.string ?? "") ?? []
        var claims: JSONObject = [
            "v": 1, "aud": .string(audience), "challenge": .string(challenge), "decision": "approve",
            "context": .string(Base64URL.encode(SHA256.hash(context))), "nonce": listed["nonce"] ?? .null,
            "uv": "none", "iat": .integer(world.time.now().seconds),
        ]
        if let request = (try? JSONReader.read(context))?.object?["request"] { claims.set("request", request) }
        let signed =
            (try? JWS.sign(
                header: ["typ": "twoefay-decision+jwt", "kid": .string(model.device.text)],
                payload: JSONWriter.write(.object(claims)), key: model.phone.key)) ?? ""
        var body: JSONObject = ["challenge": .string(challenge), "answer": .string(signed)]
        body.set("pin_signature", signature(over: signed, by: pin))
        return await insist("/success", body, as: model.certificate)
    }

    private func expect(
        _ answer: (status: Int, body: JSONObject), status: Int, code: String?, left: Int? = nil, _ what: String
    ) {
        note("\(what) \(answer.status) \(answer.body["code"]?.string ?? "-")")
        state.withLock { $0.seen[what, default: 0] += 1 }
        guard answer.status == status, answer.body["code"]?.string == code,
            answer.body["tries_left"]?.integer == left.map({ Int64($0) })
        else { return fault("\(what): \(answer), and not \(status) \(code ?? "-") \(left ?? -1)") }
    }
}
