import Bytes
import Crypto
import Domain
import JSON
import Log
import Storage
import Synchronization
import TestSupport
import Webhooks
import World

@testable import Relay

extension RelayRig {
    /// Sends the webhooks that are due after a pause, until nothing is left to send at that moment.
    func webhookRound(after pause: Duration) async throws {
        time.advance(by: pause)
        try await on { relay in await relay.deliverWebhooks() }
        await settled()
    }
}

/// A website with a webhook endpoint, and its user Ada.
struct WebhookFixture {
    static let url = "https://shop.example/hook"

    let rig: RelayRig
    let shop: Website
    let ada: Person
    let phone: RelayRig.BoundPhone

    init(_ kind: StoreKind) async throws { try await self.init(try await RelayRig(kind)) }

    /// Creates a website. The webhook about the bound phone has already been delivered.
    init(_ rig: RelayRig, _ name: String = "shop", url: String = WebhookFixture.url) async throws {
        self.rig = rig
        shop = try await rig.shop(
            name, ["answers": "signed", "number": "0", "login-limit": "1000"], webhook: url)
        ada = try await Person.registered("ada", at: shop, rig)
        let phone = try TestPhone(pushToken: "push-\(name)")
        self.phone = (phone, try await ada.bound(phone, ada.code))
        try rig.execute("DELETE FROM outbox WHERE kind = 'webhook'")
    }

    /// Opens a login and cancels it.
    @discardableResult func cancelled(by relay: Relay? = nil) async throws -> ChallengeID {
        try await rig.on { [ada, shop] own in
            let relay = relay ?? own
            let asked = try await relay.login(
                LoginRequest(subject: .token(ada.token)), by: shop, as: relay.operations.new())
            try await relay.cancel(asked.challenge, by: shop)
            return asked.challenge
        }
    }

    /// A challenge with two webhooks, one after the other.
    @discardableResult func fraud() async throws -> ChallengeID {
        let asked = try await ada.login()
        _ = try await rig.decide(.fraud, asked.challenge, by: phone)
        try await rig.on { [phone, rig] relay in
            _ = try await rig.store.unlock(
                phone.credential.user, from: [.frozen], by: .operator, at: rig.time.now(), as: relay.operations.new())
        }
        return asked.challenge
    }

    /// The number of webhooks that this website has not received yet.
    func left(_ condition: String = "1 = 1") throws -> Int64 {
        try rig.count(
            "SELECT count(*) FROM outbox WHERE kind = 'webhook' AND website_id = x'\(shop.id)' AND \(condition)")
    }

    func counted(_ outcome: String) -> Double? {
        rig.registry.number("twoefay_webhook_attempts_total{outcome=\"\(outcome)\"}")
    }

    func lines(of event: String) -> [String] { rig.sink.drain().filter { $0.contains("event=\(event) ") } }

    /// Sets the signing secrets, as an operator's command does.
    func signed(with secrets: WebhookSecrets) async throws {
        let sealer = try RelayRig.sealer()
        let sealed = WebhookEndpoints.Secrets(
            sealed: try sealer.seal(secrets.text.reveal(), associated: WebhookSecretSeal.associated(website: shop.id)),
            sealedBy: sealer.currentID)
        let changed = try await rig.on { [rig, shop] relay in
            guard let old = try await rig.store.run(WebhookEndpoints.find(shop.id)) else { return false }
            return try await rig.store.run(
                WebhookEndpoints.rotate(
                    shop.id, from: old.sealed, to: sealed, previousUntil: secrets.former?.until, at: rig.time.now(),
                    as: relay.operations.new()))
        }
        guard changed else { throw RigFailure("the secrets were not changed") }
    }

    /// Enables the endpoint, as an operator does.
    func enable() async throws -> Bool {
        try await rig.on { [rig, shop] relay in
            let now = rig.time.now()
            var next: Timestamp? = WebhookEndpoints.farthest
            while let upTo = next {
                next = try await rig.store.run(WebhookEndpoints.makeDue(shop.id, at: now, upTo: upTo))
            }
            return try await rig.store.run(WebhookEndpoints.enable(shop.id, at: now, as: relay.operations.new()))
        }
    }
}

/// Answers webhooks with a set outcome, and records what has arrived.
final class Receiver: WebhookCourier {
    private struct State {
        var outcome: WebhookOutcome
        var came: [WebhookRequest] = []
        var arrived: [WebhookRequest] = []
    }

    private let state = Mutex(State(outcome: .answered(status: 200)))

    init(_ webhooks: RecordedWebhooks) { webhooks.answerOtherwise { [self] in answer($0) } }
    init() {}

    /// Sets the outcome from now on.
    func answer(_ outcome: WebhookOutcome) { state.withLock { $0.outcome = outcome } }

    /// All attempts, and those that were delivered.
    var came: [WebhookRequest] { state.withLock { $0.came } }
    var arrived: [WebhookRequest] { state.withLock { $0.arrived } }

    private func answer(_ webhook: WebhookRequest) -> WebhookOutcome {
        state.withLock { state in
            state.came.append(webhook)
            if state.outcome.meaning == .delivered { state.arrived.append(webhook) }
            return state.outcome
        }
    }

    func send(_ webhook: WebhookRequest) async -> WebhookOutcome { answer(webhook) }
}

/// A courier that chooses another courier for each website, by the beginning of its URL.
struct Switchboard: WebhookCourier {
    let all: [String: any WebhookCourier]

    func send(_ webhook: WebhookRequest) async -> WebhookOutcome {
        guard let courier = all.first(where: { webhook.url.hasPrefix($0.key) })?.value else { return .unsent }
        return await courier.send(webhook)
    }
}

extension WebhookRequest {
    private var json: JSONObject? { (try? JSONReader.read(body))?.object }
    var type: String? { json?["type"]?.string }
    var challenge: String? { json?["data"]?.object?["challenge"]?.string }
    func field(_ name: String) -> String? { fields.first { $0.name == name }?.value }
}
