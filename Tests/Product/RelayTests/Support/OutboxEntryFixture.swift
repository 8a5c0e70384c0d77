import DeliveryOutcomes
import Domain
import Storage
import TestSupport
import World

@testable import Relay

/// Three users of one shop, and one due outbox entry about each of them.
struct OutboxEntryFixture {
    enum Kind: String, CaseIterable {
        case webhook, push, mail, sms, next, expiry
    }

    /// An unknown value in a row that makes an outbox entry unreadable.
    enum Unreadable: CaseIterable {
        case challengeOfWebhook, stepOfWebhook, stepOfNext, factorOfSMS

        var kind: Kind {
            switch self {
            case .challengeOfWebhook, .stepOfWebhook: .webhook
            case .stepOfNext: .next
            case .factorOfSMS: .sms
            }
        }
    }

    /// A row on which an outbox entry relies, and a forged value for it.
    struct Relied {
        let table: String
        let column: String
        let forged: String
        let condition: String
    }

    let rig: RelayRig
    let kind: Kind
    private let rows: [(id: String, user: UserID, challenge: ChallengeID?)]

    init(_ store: StoreKind, _ kind: Kind) async throws {
        rig = try await RelayRig(store)
        self.kind = kind
        let shop = try await rig.shop(
            "shop", ["number": "0", "factors": "push, totp, sms", "answers": "certificate"],
            webhook: kind == .webhook ? WebhookFixture.url : nil)
        if kind == .push { for _ in 0..<3 { rig.pushes.answer(.retry(after: .seconds(1), reason: "busy")) } }
        var rows: [(id: String, user: UserID, challenge: ChallengeID?)] = []
        for name in ["ada", "bea", "cleo"] {
            if kind == .sms {
                let post = try await CodeMessageFixture(rig, user: name, at: shop, by: .sms)
                rows.append((id: try await post.write().text, user: post.ada, challenge: post.asked.challenge))
            } else {
                let (user, challenge) = try await Self.begin(kind, name, at: shop, rig)
                let about = challenge.map { "challenge_id = x'\($0)'" } ?? "user_id = x'\(user)'"
                let id = try rig.text(
                    "SELECT lower(hex(id)) FROM outbox WHERE kind = '\(kind.rawValue)' AND \(about)")
                rows.append((id: id, user: user, challenge: challenge))
            }
        }
        self.rows = rows
        // Waits until the entries are due: a code by text message is leased to the relay that wrote it.
        let wait: [Kind: Duration] = [.sms: .seconds(41), .next: .seconds(31), .expiry: .seconds(301)]
        rig.time.advance(by: wait[kind] ?? .zero)
    }

    private static func begin(
        _ kind: Kind, _ name: String, at shop: Website, _ rig: RelayRig
    ) async throws -> (UserID, ChallengeID?) {
        let email = kind == .mail ? "\(name)@example.com" : nil
        let person = try await Person.registered(name, at: shop, rig, email: email)
        let phone = try await person.bound(try TestPhone(pushToken: "push-\(name)"), person.code)
        await rig.settled()
        guard kind != .mail else { return (phone.user, nil) }
        try rig.execute("DELETE FROM outbox WHERE user_id = x'\(phone.user)'")
        if kind == .next { try rig.addFactor(.totp, of: phone.user, at: shop, period: 30) }
        let asked = try await person.login()
        await rig.settled()
        if kind == .webhook {
            try await rig.on { relay in try await relay.cancel(asked.challenge, by: shop) }
        }
        return (phone.user, asked.challenge)
    }

    /// Processes the due entries after a pause that is longer than a lease.
    func round(after pause: Duration = .seconds(16)) async throws {
        if kind == .webhook { try await rig.webhookRound(after: pause * 2) } else { try await rig.round(after: pause) }
    }

    func ids() throws -> [String] { rows.map(\.id) }

    var isSecond: String { "id = x'\(rows[1].id)'" }

    func second(_ condition: String) throws -> Bool {
        try rig.count("SELECT count(*) FROM outbox WHERE \(isSecond) AND \(condition)") == 1
    }

    /// Whether the second entry is no longer in the outbox.
    func isSettled() throws -> Bool { try !second("1 = 1") }

    /// Returns which of the three entries were processed.
    func done() throws -> [Bool] {
        try rows.map { row in
            switch kind {
            case .webhook: rig.webhooks.sent.contains { $0.id.text == row.id }
            // At the first attempt the push service was busy.
            case .push: rig.pushes.sent.count { $0.id.text == row.id } > 1
            case .mail: rig.mails.sent.contains { $0.id.text == row.id }
            case .sms: rig.texts.sent.contains { $0.id.text == row.id }
            case .next:
                try row.challenge.map {
                    try rig.count("SELECT count(*) FROM step WHERE challenge_id = x'\($0)' AND ordinal = 2") == 1
                } ?? false
            case .expiry:
                try row.challenge.map {
                    try rig.count("SELECT count(*) FROM challenge WHERE id = x'\($0)' AND decided_at IS NOT NULL") == 1
                } ?? false
            }
        }
    }

    /// Returns the rows of `outbox list --dead`.
    func dead() async throws -> [OutboxAdmin.Row] {
        var wanted = OutboxAdmin.Filter()
        wanted.onlyDead = true
        let (store, query) = (rig.store, OutboxAdmin.list(wanted))
        return try await rig.on { _ in try await store.run(query) }
    }

    /// Returns a row on which the second entry relies.
    func relied() throws -> Relied {
        guard let challenge = rows[1].challenge else {
            return Relied(
                table: "user", column: "email", forged: "stranger@example.com", condition: "id = x'\(rows[1].user)'")
        }
        return Relied(
            table: "challenge", column: "policy", forged: #"{"number":"none"}"#, condition: "id = x'\(challenge)'")
    }

    /// Returns SQL that makes the second entry unreadable, and SQL that reverts that.
    func unreadable(_ what: Unreadable) throws -> (change: String, back: String) {
        let challenge = rows[1].challenge?.text ?? ""
        let (table, condition) =
            switch what {
            case .challengeOfWebhook: ("challenge", "id = x'\(challenge)'")
            case .stepOfWebhook, .stepOfNext: ("step", "challenge_id = x'\(challenge)' AND ordinal = 1")
            case .factorOfSMS: ("factor", "user_id = x'\(rows[1].user)'")
            }
        let state = try rig.text("SELECT state FROM \(table) WHERE \(condition)")
        let change = { (state: String) in "UPDATE \(table) SET state = '\(state)' WHERE \(condition)" }
        return (change("nonsense"), change(state))
    }
}

extension Push {
    /// The same push at its second attempt.
    var again: Push {
        var push = self
        push.attempts = 1
        return push
    }
}
