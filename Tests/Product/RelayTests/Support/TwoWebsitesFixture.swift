import Bytes
import Crypto
import Domain
import JSON
import Log
import Relay
import Storage
import TestSupport
import Testing
import World

/// Two websites; Ada has two phones at the shop, Bob one, and Carl one at the bank.
struct TwoWebsitesFixture {
    let rig: RelayRig
    let shop: Website
    let bank: Website
    let ada: UserToken
    let first: RelayRig.BoundPhone
    let second: RelayRig.BoundPhone
    let bob: RelayRig.BoundPhone
    let carl: RelayRig.BoundPhone

    init(_ kind: StoreKind, policies: [String: String] = [:]) async throws {
        rig = try await RelayRig(kind)
        let policies = ["answers": "signed", "further-factors": "website", "login-limit": "1000"].merging(policies) {
            $1
        }
        shop = try await rig.website("shop", policies: policies)
        bank = try await rig.website("bank", policies: policies)
        let enrolled = try await rig.enrolled("ada", at: shop)
        ada = enrolled.user
        first = (enrolled.phone, enrolled.credential)
        second = try await rig.further(of: "ada", ada, at: shop)
        let others = (try await rig.enrolled("bob", at: shop), try await rig.enrolled("carl", at: bank))
        bob = (others.0.phone, others.0.credential)
        carl = (others.1.phone, others.1.credential)
    }

    /// Opens a challenge for Ada.
    ///
    /// - Parameter operation: the operation from which the challenge's id is derived.
    func ask(
        number: String? = "47", request: String? = "r-1", amount: String = "12.50 EUR", as operation: OperationID? = nil
    ) async throws -> OpenedChallenge {
        try await rig.on { [ada, shop] relay in
            try await relay.login(
                LoginRequest(
                    subject: .token(ada), request: request, number: number, service: "pay",
                    details: [Context.Detail(label: "amount", value: amount)]), by: shop,
                as: operation.map { relay.operations.again($0) } ?? relay.operations.new())
        }
    }

    func reported(_ asked: OpenedChallenge) async throws -> ChallengeResult {
        try await rig.on { [shop] relay in try await relay.result(asked.challenge, to: shop) }
    }

    /// Returns everything that a refused decision must not change.
    func state(_ asked: OpenedChallenge) async throws -> State {
        let store = rig.store
        let row = try await rig.on { [first] _ in
            try await store.challenge(asked.challenge, of: first.credential.user)
        }
        return State(
            challenge: row, failures: try rig.count("SELECT coalesce(sum(failures), 0) FROM device"),
            failed: try rig.count("SELECT count(*) FROM device WHERE failed_at IS NOT NULL"),
            active: try rig.count("SELECT count(*) FROM user WHERE state = 'active'"),
            entries: try rig.count("SELECT count(*) FROM outbox"),
            events: try rig.count("SELECT count(*) FROM audit WHERE event <> 'decision.refused'"))
    }

    struct State: Equatable {
        let challenge: ChallengeRow?
        let failures: Int64
        let failed: Int64
        let active: Int64
        let entries: Int64
        let events: Int64
    }

    /// Returns how many audit rows record a decision of that phone that was refused for this fault.
    func refusals(_ fault: DecisionFault, by phone: RelayRig.BoundPhone, about challenge: ChallengeID?) throws -> Int64
    {
        let about = challenge.map { "= x'\($0)'" } ?? "IS NULL"
        return try rig.count(
            """
            SELECT count(*) FROM audit WHERE event = 'decision.refused' AND outcome = '\(fault.rawValue)'
            AND device_id = x'\(phone.credential.id)' AND challenge_id \(about) AND proof IS NULL
            """)
    }

    /// Returns the metric for this fault, over all phones.
    func counted(_ fault: DecisionFault) -> Double? {
        rig.registry.number("twoefay_decisions_refused_total{reason=\"\(fault.rawValue)\"}")
    }

    /// Locks Ada, as an operator does.
    func lock() async throws -> Bool {
        let (user, store) = (first.credential.user, rig.store)
        return try await rig.on { [rig] relay in
            try await store.run(Locks.lock(user, at: rig.time.now(), as: relay.operations.new()))
        }
    }

    /// Unlocks Ada and clears her failures, as an operator does.
    func unlock() async throws {
        let store = rig.store
        let unlocked = try await rig.on { [first, rig] relay in
            try await store.unlock(
                first.credential.user, from: [.locked, .frozen], by: .operator, at: rig.time.now(),
                as: relay.operations.new())
        }
        #expect(unlocked)
    }
}

extension RelayRig {
    /// Returns a login that is the same operation at each call.
    func oneLogin(of user: UserToken, by website: Website) -> @Sendable (Relay) async throws -> OpenedChallenge {
        let operation = relay.operations.new()
        return { relay in
            try await relay.login(
                LoginRequest(subject: .token(user)), by: website, as: relay.operations.again(operation.id))
        }
    }

    /// Returns another relay over the same store: another node, or this one after a restart.
    func another() throws -> Relay {
        try Self.relay(
            over: store, push: nil,
            phones: try CertificateAuthority.create(commonName: "phones", days: 10, at: time.now()), time: time,
            randomness: SystemRandomness(), log: Log(minimum: .debug, time: time, sink: sink), isAlone: false
        ) { _ in }
    }
}
