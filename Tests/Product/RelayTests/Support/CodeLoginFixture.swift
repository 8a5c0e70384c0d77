import Bytes
import Domain
import Storage
import TestSupport
import World

@testable import Relay

/// A user, Ada, at the shop, with or without a phone, and with the code factors that a test adds.
struct CodeLoginFixture {
    /// The codes of the rig's secret for the counters from 0 (RFC 4226, appendix D).
    static let codes = [
        "755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489",
    ]
    /// A code that is none of these.
    static let wrong = "000000"

    let rig: RelayRig
    let shop: Website
    let ada: UserToken
    let id: UserID
    /// Ada's phone; nil if she has none.
    let phone: RelayRig.BoundPhone?

    init(
        _ kind: StoreKind, policies: [String: String] = [:], hasPhone: Bool = true, webhook: String? = nil
    ) async throws {
        rig = try await RelayRig(kind)
        shop = try await rig.website(
            "shop", policies: ["answers": "signed"].merging(policies) { $1 }, webhook: webhook)
        if hasPhone {
            let (token, phone, credential) = try await rig.enrolled("ada", at: shop)
            (ada, id, self.phone) = (token, credential.user, (phone, credential))
        } else {
            let person = try await Person.registered("ada", at: shop, rig)
            let row = try await rig.on { [shop] relay in try await relay.user(named: "ada", of: shop) }
            (ada, id, phone) = (person.token, row.id, nil)
        }
    }

    @discardableResult func give(_ kind: Factor) throws -> CodeFactor {
        let address: String? =
            switch kind {
            case .sms: "+4366012345678"
            case .mail: "ada@example.com"
            default: nil
            }
        return try rig.addFactor(kind, of: id, at: shop, address: address, period: kind == .totp ? 30 : nil)
    }

    func login(
        factors: [Factor]? = nil, minAssurance: Assurance? = nil, expiresIn: Int? = nil
    ) async throws -> OpenedChallenge {
        let asked = try await rig.on { [ada, shop] relay in
            try await relay.login(
                LoginRequest(
                    subject: .token(ada), expiresIn: expiresIn, factors: factors, minAssurance: minAssurance), by: shop,
                as: relay.operations.new())
        }
        await rig.settled()
        return asked
    }

    func reported(_ asked: OpenedChallenge) async throws -> ChallengeResult {
        try await rig.on { [shop] relay in try await relay.result(asked.challenge, to: shop) }
    }

    /// Returns the steps as text: `push expired, totp sent`.
    func steps(_ asked: OpenedChallenge) async throws -> String {
        try await reported(asked).steps.map { "\($0.factor) \($0.state)" }.joined(separator: ", ")
    }

    /// Processes the outbox after a pause.
    func later(_ pause: Duration) async throws {
        rig.time.advance(by: pause)
        try await rig.on { relay in await relay.processDueEntries() }
        await rig.settled()
    }

    func begin(_ factor: Factor, _ asked: OpenedChallenge, as operation: Operation? = nil) async throws -> BegunStep {
        let begun = try await rig.on { [shop] relay in
            try await relay.begin(factor, of: asked.challenge, by: shop, as: operation ?? relay.operations.new())
        }
        await rig.settled()
        return begun
    }

    func handIn(_ code: String, _ asked: OpenedChallenge, as operation: Operation? = nil) async throws
        -> ChallengeResult
    {
        try await rig.on { [shop] relay in
            try await relay.backup(
                asked.challenge, of: nil, code: code, by: shop, as: operation ?? relay.operations.new())
        }
    }

    /// Submits a code, and returns a refusal as a value.
    func outcome(of code: String, _ asked: OpenedChallenge) async -> Result<ChallengeResult, Refusal> {
        do {
            return .success(try await handIn(code, asked))
        } catch {
            return .failure(error as? Refusal ?? .broken)
        }
    }

    func totp(_ offset: Int64 = 0) -> String {
        OTP.code(
            secret: Secret(RelayRig.secret),
            counter: UInt64(OTP.step(at: rig.time.now(), period: 30) + offset), algorithm: .sha1, digits: 6)
    }

    /// The user's consecutive wrong codes, over all factors.
    var budget: Int64 { get throws { try rig.count("SELECT code_failures FROM user") } }

    var areCodesLocked: Bool {
        get throws { try rig.count("SELECT count(*) FROM user WHERE codes_locked_at IS NOT NULL") == 1 }
    }

    /// Unlocks the user, as `twoefay user unlock` does.
    func unlockByOperator() async throws -> Bool {
        let (store, now) = (rig.store, rig.time.now())
        return try await rig.on { [id] relay in
            try await store.unlock(id, from: [.locked, .frozen], by: .operator, at: now, as: relay.operations.new())
        }
    }

    func failures(of kind: Factor) throws -> Int64 {
        try rig.count("SELECT failures FROM factor WHERE kind = '\(kind)'")
    }
}
