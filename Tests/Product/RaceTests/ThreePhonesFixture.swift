import Domain
import Relay
import Storage
import TestSupport
import Testing

/// A website whose phones sign their answers, and Ada with three phones.
struct ThreePhonesFixture {
    let rig: RelayRig
    let shop: Website
    let ada: UserToken
    let first: RelayRig.BoundPhone
    let second: RelayRig.BoundPhone
    let third: RelayRig.BoundPhone

    init(_ kind: StoreKind, policies: [String: String] = [:]) async throws {
        rig = try await RelayRig(kind)
        let policies = ["answers": "signed", "further-factors": "website", "login-limit": "1000"].merging(policies) {
            $1
        }
        shop = try await rig.website("shop", policies: policies)
        let enrolled = try await rig.enrolled("ada", at: shop)
        ada = enrolled.user
        first = (enrolled.phone, enrolled.credential)
        second = try await rig.further(of: "ada", ada, at: shop)
        third = try await rig.further(of: "ada", ada, at: shop)
    }

    /// Opens a challenge for Ada.
    func ask() async throws -> OpenedChallenge {
        try await rig.on { [ada, shop] relay in
            try await relay.login(
                LoginRequest(subject: .token(ada), number: "47", service: "pay"), by: shop,
                as: relay.operations.new())
        }
    }

    func reported(_ asked: OpenedChallenge) async throws -> ChallengeResult {
        try await rig.on { [shop] relay in try await relay.result(asked.challenge, to: shop) }
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
