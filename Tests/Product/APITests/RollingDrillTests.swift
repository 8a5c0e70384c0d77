import Bytes
import Crypto
import Domain
import EventLoop
import HTTP
import JSON
import Log
import Relay
import Storage
import TestSupport
import Testing
import World

@testable import API

/// A drill: while users log in, the keys that relays replace by themselves are replaced, by their
/// schedules, by an operator and by a new master key. No login is lost.
///
/// Two relays share one store. The website asks one, and the phone proves its key at the other one.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct RollingDrillTests {
    private static let hourly = RollingKeySchedule(period: .seconds(3600))

    /// A phone with the nonce of the last answer, as the app keeps it.
    private actor Caller {
        let phone: TestPhone
        private var nonce: String?
        /// The number of requests that a relay refused at first, because their nonce was not valid.
        private(set) var repetitions = 0

        init(_ phone: TestPhone) { self.phone = phone }

        /// Sends the request, and repeats it once with the nonce of the refusal.
        func pending(at relay: API, _ rig: APIRig) async throws -> Response {
            for isLast in [false, true] {
                let proof = try phone.possession(
                    "POST", RelayRig.origin + "/pending", nonce: nonce, at: rig.relay.time.now())
                let answer = await rig.send(
                    rig.stranger.request("POST", "/pending", fields: [("dpop", proof)]), to: relay)
                nonce = answer.fields["dpop-nonce"] ?? nonce
                guard !isLast, answer.asks == "use_dpop_nonce" else { return answer }
                repetitions += 1
            }
            throw RigFailure("not reached")
        }
    }

    private struct Installation {
        let rig: APIRig
        let relays: [Relay]
        let apis: [API]
        let shop: Site
        var callers: [(name: String, caller: Caller, credential: PhoneCredential)] = []

        init(_ kind: StoreKind) async throws {
            rig = try await APIRig(kind)
            let rig = rig
            var options = StoreOptions.patient
            options.rows = try RelayRig.rowAuthenticator()
            // On MariaDB, the second relay has connections of its own.
            let second =
                kind == .mariadb
                ? try Store.open(rig.relay.url, time: SystemTime(), log: Log(minimum: .error), options: options)
                : rig.relay.store
            relays = try [rig.relay.store, second].map {
                let rolling = RollingKeySettings(nonces: RollingDrillTests.hourly, webhooks: .seconds(3600))
                return try rig.relay.relay(over: $0, rolling: rolling)
            }
            apis = relays.map { relay in
                API(
                    settings: API.Settings(origin: RelayRig.origin), relay: relay, dependencies: [],
                    time: rig.relay.time, randomness: SystemRandomness(),
                    log: Log(minimum: .info, time: rig.relay.time, sink: rig.relay.sink), atTurnEnd: { $0() })
            }
            let shop = try await rig.relay.website(
                "shop", policies: ["answers": "signed", "number": "0"], webhook: "https://shop.example/hook")
            self.shop = Site(rig: rig, certificate: .website("shop"))
            for name in ["ada", "bob", "eve"] {
                let user = try await rig.relay.enrolled(name, at: shop)
                callers.append((name, Caller(user.phone), user.credential))
            }
        }

        /// Logs the user in: one relay is asked, and the phone fetches the login from the other
        /// one.
        func logIn(_ index: Int, round: Int) async throws {
            let (name, caller, credential) = callers[index]
            let (one, other) = (apis[(round + index) % 2], apis[(round + index + 1) % 2])
            let asked = await rig.send(shop.request("POST", "/login", ["username": .string(name)]), to: one)
            guard let text = asked["challenge"]?.string, let challenge = ChallengeID(text) else {
                throw RigFailure("/login answered \(asked.status) \(asked.text)")
            }
            let pending = try await caller.pending(at: other, rig)
            #expect(pending.status == 200 && pending.text.contains(text), "\(pending.text)")
            _ = try await rig.relay.decide(.approve, challenge, by: (caller.phone, credential))
            let result = await rig.send(shop.request("POST", "/auth", ["challenge": .string(text)]), to: other)
            #expect(result["login"] == "success", "\(result.text)")
        }

        func rollAll() async throws {
            for relay in relays {
                try await rig.relay.on { _ in
                    await relay.rollKeysIfMissed()
                    await relay.rollKeys()
                    await relay.reseal()
                    await relay.rollWebhookSecrets()
                }
            }
        }

        /// Replaces all keys for nonces at once, as `twoefay keys roll nonces --now`.
        func replaceNonceKeys(with sealer: Sealer) throws {
            let store = rig.relay.store
            let found = RollingKeys(try store.runBlocking(RollingKeyRows.read(.nonces)), with: sealer)
            let change = try found.next(
                .nonces, on: RollingDrillTests.hourly, atOnce: true, by: .operator, with: sealer,
                randomness: SystemRandomness(), at: rig.relay.time.now())
            let roll = try #require(change)
            #expect(try store.runBlocking(RollingKeyRows.roll(roll, as: relays[0].operations.new())).isDone)
        }

        /// Fetches the webhook secrets of the shop, the newest first.
        func secrets(at index: Int) async throws -> [String] {
            let answer = await rig.send(shop.request("GET", "/webhook/secrets"), to: apis[index])
            let list = try #require(answer["secrets"]?.array, "\(answer.status) \(answer.text)")
            return list.compactMap { $0.object?["secret"]?.string }
        }

        func use(_ keys: [Sealer.Key]) throws { for relay in relays { relay.replace(try Sealer(keys: keys)) } }
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func everyKeyIsReplacedAndNoLoginIsLost(kind: StoreKind) async throws {
        let drill = try await Installation(kind)
        let old = Sealer.Key(id: "1", key: RelayRig.masterKey)
        let new = Sealer.Key(id: "2", key: Secret(Array(repeating: 8, count: 32)))
        let future = Sealer.Key(id: "2", key: new.key, isNext: true)
        // Both relays accept the nonces of the other one after six seconds.
        drill.rig.relay.time.advance(by: .seconds(6))
        try await drill.rollAll()
        let first = try await drill.secrets(at: 0)
        #expect(first.count == 1)
        // Three and a half hours, in steps shorter than the life of a nonce.
        for round in 0..<70 {
            drill.rig.relay.time.advance(by: .seconds(180))
            switch round {
            case 10: try drill.use([future, old])
            case 11: try drill.use([new, old])
            case 30: try drill.use([new])
            case 45: try drill.replaceNonceKeys(with: try Sealer(keys: [new]))
            default: break
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await drill.rollAll() }
                for index in drill.callers.indices { group.addTask { try await drill.logIn(index, round: round) } }
                try await group.waitForAll()
            }
        }
        let store = drill.rig.relay.store
        #expect(try store.runBlocking(RollingKeyRows.read(.nonces)).allSatisfy { $0.sealedBy == "2" })
        // The webhook secret is another one, under the new master key, and the former one is valid,
        // too. No third one is made before the website has fetched the second.
        let secrets = try await drill.secrets(at: 1)
        #expect(secrets.count == 2 && secrets.last == first.first && secrets.first != first.first)
        #expect(try drill.rig.relay.count("SELECT count(*) FROM audit WHERE event = 'webhook.rotated'") == 1)
        #expect(try drill.rig.relay.text("SELECT sealed_by FROM webhook_endpoint") == "2")
        // The first key, three by the schedule, and one by the operator, after which the
        // schedule begins again.
        #expect(try drill.rig.relay.count("SELECT count(*) FROM audit WHERE event = 'key.rolled'") == 5)
        for (_, caller, _) in drill.callers {
            // A schedule costs no phone a second attempt. The first request has no nonce, and keys
            // that are replaced at once cost one more at most.
            let repetitions = await caller.repetitions
            #expect((1...2).contains(repetitions))
        }
    }
}

extension APIRig {
    /// Sends a request to another relay of this rig, and returns its answer.
    fileprivate func send(_ request: Request, to api: API) async -> Response {
        let outcome = await relay.loop.perform { () async -> Outcome in
            switch api.handle(request) {
            case .now(let response): .response(response)
            case .later(_, _, let work): await work()
            }
        }
        return switch outcome {
        case .response(let response): response
        case .held(let hold): await end(hold)
        }
    }
}
