import Bytes
import Domain
import TestSupport
import World

@testable import Relay
@testable import Storage

/// A login of Ada's at the shop, for which a code is sent. The codes are those of RFC 4226.
struct CodeMessageFixture {
    static let codes = ["755224", "287082"]

    let rig: RelayRig
    let shop: Website
    let ada: UserID
    let kind: MessageKind
    let asked: OpenedChallenge
    let factor: CodeFactor
    let phone: RelayRig.BoundPhone

    var messages: RecordedMessages { kind == .mail ? rig.mails : rig.texts }
    var address: String { kind == .mail ? "ada@example.com" : "+4366012345678" }

    init(_ store: StoreKind, by kind: MessageKind = .mail, living seconds: Int = 300) async throws {
        let rig = try await RelayRig(store)
        let shop = try await rig.website("shop", policies: ["number": "0"])
        try await self.init(rig, at: shop, by: kind, living: seconds)
    }

    init(
        _ rig: RelayRig, user: String = "ada", at shop: Website, by kind: MessageKind = .mail, living seconds: Int = 300
    ) async throws {
        self.rig = rig
        self.shop = shop
        self.kind = kind
        let (token, phone, credential) = try await rig.enrolled(user, at: shop)
        self.phone = (phone, credential)
        ada = credential.user
        asked = try await rig.on { relay in
            try await relay.login(
                LoginRequest(subject: .token(token), ip: "192.0.2.7", service: "pay", expiresIn: seconds),
                by: shop, as: relay.operations.new())
        }
        await rig.settled()
        let address = kind == .mail ? "ada@example.com" : "+4366012345678"
        factor = try rig.addFactor(kind == .mail ? .mail : .sms, of: ada, at: shop, address: address)
        try rig.execute(
            """
            INSERT INTO step (challenge_id, ordinal, factor, state, at)
            VALUES (x'\(asked.challenge)', 2, '\(kind.rawValue)', 'queued', '\(rig.time.now().sql)')
            """)
    }

    /// Writes the outbox entry, leased to a relay.
    ///
    /// - Parameter counter: the factor's counter at that time.
    func write(counter: Int64 = 0, of relay: Relay? = nil, forLogin: Bool = true) async throws -> OutboxEntryID {
        let (relay, store, now) = (relay ?? rig.relay, rig.store, rig.time.now())
        let operation = relay.operations.new()
        let factor = CodeFactor(
            id: factor.id, kind: factor.kind, state: factor.state, secret: factor.secret,
            algorithm: factor.algorithm, digits: factor.digits, period: nil, counter: counter,
            address: factor.address, failures: 0, failedAt: nil, createdAt: factor.createdAt, confirmedAt: nil)
        let code = relay.nextCode(
            of: factor, for: forLogin ? asked.challenge : nil, language: nil, until: asked.expiresAt, at: now,
            as: operation)
        let writes =
            [Self.audit(operation: .id(operation), now: .timestamp(now))] + CodeEntries.insert(code, as: operation)
        _ = try await rig.on { _ in
            try await store.run(
                Script("test", operation: operation.id.bytes, rows: SignedRows.everythingAdopted, writes: writes))
        }
        return code.id
    }

    private static let audit = Statement("INSERT INTO audit (operation, at, event) VALUES (:operation, :now, 'test')")

    /// Sends the message at once, as after every login.
    func carry(_ entry: OutboxEntryID) async throws {
        try await rig.on { relay in relay.startDelivery(entry) }
        await rig.settled()
    }

    func send() async throws { try await carry(try await write()) }

    func step() async throws -> ChallengeRow.Step {
        let steps = try await rig.on { [asked, shop] relay in
            try await relay.store.challenge(asked.challenge, of: shop.id)
        }?.steps
        guard let steps, steps.count == 2 else { throw RigFailure("not two steps: \(steps ?? [])") }
        return steps[1]
    }

    func left() throws -> Int64 {
        try rig.count("SELECT count(*) FROM outbox WHERE kind = '\(kind.rawValue)'")
    }

    func audits(_ condition: String = "1 = 1") throws -> Int64 {
        try rig.count("SELECT count(*) FROM audit WHERE event = '\(kind.rawValue).settled' AND \(condition)")
    }
}

extension RelayRig {
    /// Processes the outbox after a pause.
    func round(after pause: Duration) async throws {
        time.advance(by: pause)
        try await on { relay in await relay.processDueEntries() }
        await settled()
    }
}

extension Message {
    /// The digits of the code; nil if the message has none.
    var code: String? {
        guard case .code(let code) = content else { return nil }
        return String(decoding: code.digits.reveal(), as: UTF8.self)
    }
}
