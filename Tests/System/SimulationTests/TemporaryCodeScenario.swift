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

/// Users without a phone, a help desk, and a relay that is killed repeatedly, all in virtual time.
///
/// Purpose: the scenario shows that a crash of the relay uses no temporary code twice, and loses no
/// use. The help desk writes to the store, as the tool does, while the relay may be dead. Each
/// person types a code that is right or wrong, by the seed, and the website repeats its requests
/// under an idempotency key until it has an answer.
///
/// A model beside each user counts uses and wrong codes. Each answer, and the rows at the end, must
/// be as the model says (`faults`).
final class TemporaryCodeScenario: PushCourier, KilledScenario, @unchecked Sendable {
    // Guard for `@unchecked Sendable`: everything runs on the one thread that drives the world.
    // `state` has a lock nevertheless, because closures that cross loops must be Sendable.

    private struct State {
        var trace: [String] = []
        var faults: [String] = []
        /// The count of each outcome, for the proof that the scenario covers them.
        var seen: [String: Int] = [:]
        var finished = 0
    }

    let world: SimulatedWorld
    private(set) var relays: SimulatedRelays?
    let clients: EventLoop
    private let desk: Operations
    private let state = Mutex(State())
    private let websiteKey = SHA256.hash(Array("shop".utf8))

    init(seed: UInt64) throws {
        world = SimulatedWorld(seed: seed)
        clients = world.loop("clients")
        desk = Operations(masterKey: RelayRig.masterKey, randomness: world.chance, time: world.time)
        relays = try SimulatedRelays(world, pushes: self)
    }

    var trace: [String] { state.withLock { $0.trace } }
    var faults: [String] { state.withLock { $0.faults } }
    var seen: [String: Int] { state.withLock { $0.seen } }

    func send(_ push: Push) async -> DeliveryOutcome { .accepted(by: nil) }

    func finish() { state.withLock { $0.finished += 1 } }

    func note(_ what: String) {
        let at = world.time.instant().nanoseconds / 1_000_000
        state.withLock { $0.trace.append("\(at) \(what)") }
    }

    private func count(_ what: String) { state.withLock { $0.seen[what, default: 0] += 1 } }
    private func fault(_ what: String) { state.withLock { $0.faults.append(what) } }
    private func chance(_ bound: UInt64) -> UInt64 { world.chance.number(below: bound) }

    // MARK: The run

    /// Runs the whole scenario. Returns false if a person did not come to an end.
    func run(users: Int, codes: Int, kills: Int) throws -> Bool {
        guard let relays else { return false }
        try relays.start()
        guard let relay = relays.process?.relay else { return false }
        let new = Websites.New(
            id: relay.operations.draw(), name: "shop", displayName: "The Shop",
            policy: #"{"answers":"signed","factors":"push, operator","login-limit":"1000","guesses":"100"}"#,
            webhook: nil, keyThumbprint: websiteKey, createdAt: world.time.now())
        try world.add(new, to: relays, by: relay, on: clients)
        for user in 0..<users { onClients { await self.live(user: "user-\(user)", codes: codes) } }
        onClients { await self.disturb(kills) }
        return world.run(for: .seconds(40_000)) { self.state.withLock { $0.finished == users + 1 } }
    }

    /// Runs a query that returns one number, at the end of the scenario.
    func ask(_ sql: String) throws -> Int64 { try world.number(of: sql, in: relays, on: clients) }

    // MARK: The network

    /// Sends the same bytes until there is a final answer: no 5xx, and no request to wait.
    private func insist(_ path: String, _ body: JSONObject, key: String) async -> (status: Int, body: JSONObject) {
        let website = ClientCertificate(
            authority: .websites, uris: ["twoefay:website:shop"], keyThumbprint: websiteKey)
        while true {
            if let process = relays?.process {
                var fields = Fields([Fields.Field("content-type", "application/json")])
                fields.add("idempotency-key", key)
                let request = Request(
                    method: "POST", path: path, fields: fields, body: JSONWriter.write(.object(body)),
                    certificate: website)
                let response = await SimulatedNetwork.send(
                    request, to: process.api, on: process.loop, from: clients,
                    latency: { self.milliseconds(1..<50) }, timeout: .seconds(20))
                if let response, response.status < 500, response.status != 429,
                    let object = (try? JSONReader.read(response.body))?.object,
                    !(response.status == 409 && object["code"] == "conflict")
                {
                    return (response.status, object)
                }
            }
            await clients.sleep(for: milliseconds(50..<1_000))
        }
    }

    // MARK: A person

    private func live(user: String, codes: Int) async {
        _ = await insist("/register", ["username": .string(user)], key: "\(user)-register")
        guard let id = await id(of: user) else { return fault("\(user) is not registered") }
        for number in 0..<codes {
            let uses = 1 + Int(chance(2))
            guard let code = await give(to: id, uses: uses) else {
                fault("\(user) got no code")
                continue
            }
            // A login more than the code permits.
            for use in 0...uses { await logIn(user, code, "\(user)-\(number)-\(use)", isRight: use < uses) }
            await clients.sleep(for: milliseconds(0..<2_000))
        }
    }

    private func logIn(_ user: String, _ code: String, _ key: String, isRight: Bool) async {
        while true {
            let asked = await insist("/login", ["username": .string(user)], key: "\(key)-\(chance(1 << 40))")
            guard let challenge = asked.body["challenge"]?.string else { return fault("\(key): \(asked)") }
            let isTypo = isRight && chance(3) == 0
            let typed = isTypo ? String(code.map { $0 == "-" ? "-" : $0 == "7" ? "8" : "7" }) : code
            let answer = await insist(
                "/backup", ["challenge": .string(challenge), "otp": .string(typed)], key: challenge)
            let login = answer.body["login"]?.string
            note("\(key) \(answer.status) \(login ?? answer.body["code"]?.string ?? "-")")
            // The delay of wrong codes may be longer than the login. Without a code that can be used,
            // a login fails at once.
            if answer.body["code"] == "already_decided", isRight, login != "success" { continue }
            guard isTypo else {
                count(login == "success" ? "success" : "used up")
                if (login == "success") != isRight { fault("\(key): \(answer)") }
                return
            }
            count("wrong")
            if login != "failure" { fault("\(key): \(answer)") }
        }
    }

    // MARK: The help desk

    private func id(of user: String) async -> UserID? {
        guard let store = relays?.store else { return nil }
        return try? await store.run(Accounts.user(user, of: "shop"))?.id
    }

    private func give(to user: UserID, uses: Int) async -> String? {
        guard let store = relays?.store, let sealer = try? RelayRig.sealer() else { return nil }
        let (operation, text) = (desk.new(), TemporaryCode.text(world.chance.bytes(TemporaryCode.bytes)))
        guard
            let new = NewTemporaryCode(
                text, for: user, uses: uses, mayEnrol: false, life: .seconds(86_400), at: world.time.now(),
                as: operation, by: sealer)
        else { return nil }
        let isGiven = try? await store.run(TemporaryCodes.issue(new, replacing: nil, as: operation))
        return isGiven == true ? text : nil
    }
}
