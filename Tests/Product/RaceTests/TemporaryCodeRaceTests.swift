import Domain
import Relay
import Storage
import TestSupport
import Testing

/// A temporary code for several logins at the same time: each use counts for one of them.
@Suite(.timeLimit(.minutes(30)), .mayBlock) struct TemporaryCodeRaceTests {
    private struct Help {
        let rig: RelayRig
        let shop: Website
        let ada: UserToken
        let id: UserID

        init(_ kind: StoreKind) async throws {
            rig = try await RelayRig(kind)
            shop = try await rig.website(
                "shop", policies: ["factors": "push, operator", "login-limit": "1000", "push-limit": "1"])
            let enrolled = try await rig.enrolled("ada", at: shop)
            (ada, id) = (enrolled.user, enrolled.credential.user)
        }

        /// Gives out another code in each round.
        func give(uses: Int, round: Int) async throws -> String {
            let (store, now) = (rig.store, rig.time.now())
            return try await rig.on { [id] relay in
                let operation = relay.operations.new()
                let text = TemporaryCode.text([0, 0, 0, 0, 0, 0, UInt8(clamping: round)])
                guard
                    let new = NewTemporaryCode(
                        text, for: id, uses: uses, mayEnrol: false, life: .seconds(3600), at: now, as: operation,
                        by: try RelayRig.sealer()),
                    try await store.run(TemporaryCodes.issue(new, replacing: nil, as: operation))
                else { throw RigFailure("no code is given out") }
                return text
            }
        }

        /// Opens a login. One from a known browser and one from an unknown one are open at the same
        /// time.
        func ask(isKnown: Bool) async throws -> ChallengeID {
            try await rig.on { [ada, shop] relay in
                try await relay.login(
                    LoginRequest(subject: .token(ada), isKnown: isKnown), by: shop, as: relay.operations.new()
                ).challenge
            }
        }
    }

    private func answer(
        _ code: String, _ challenge: ChallengeID, _ shop: Website, at rig: RelayRig
    ) async -> Result<ChallengeLife.Result, Refusal> {
        do {
            return .success(
                try await rig.on { relay in
                    try await relay.backup(challenge, of: nil, code: code, by: shop, as: relay.operations.new())
                }.result)
        } catch {
            return .failure(error as? Refusal ?? .broken)
        }
    }

    /// Two relays judge the same code for two logins: with one use, one of them succeeds; with two
    /// uses, both do.
    @Test(arguments: [StoreKind.file, .mariadb]) func useCountsForOneLogin(kind: StoreKind) async throws {
        let help = try await Help(kind)
        let other = try await RelayRig(beside: help.rig)
        for round in 0..<40 {
            help.rig.time.advance(by: .seconds(20))
            let uses = 1 + round % 2
            let code = try await help.give(uses: uses, round: round)
            // A login from an unknown browser does not end one from a known browser.
            let challenges = [try await help.ask(isKnown: true), try await help.ask(isKnown: false)]
            try #require(try help.rig.count("SELECT count(*) FROM challenge WHERE decided_at IS NULL") >= 2)
            let shop = help.shop
            let results = await withTaskGroup(of: Result<ChallengeLife.Result, Refusal>.self) { group in
                for challenge in challenges {
                    for rig in [help.rig, other] {
                        group.addTask { await answer(code, challenge, shop, at: rig) }
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            // An answer reports the state of its challenge, which the other relay may have ended.
            var succeeded = 0
            for challenge in challenges {
                let reported = try await other.on { relay in try await relay.result(challenge, to: shop) }
                if reported.result == .success { succeeded += 1 }
            }
            #expect(succeeded == uses, "\(results)")
            #expect(try help.rig.count("SELECT uses - uses_left FROM temporary_code") == Int64(uses))
        }
        let used = try help.rig.count("SELECT count(*) FROM audit WHERE event = 'temporary.used'")
        let answered = try help.rig.count(
            "SELECT count(*) FROM challenge WHERE decision = 'approve' AND factor = 'operator'")
        #expect(used == answered)
        #expect(try help.rig.count("SELECT code_failures FROM user") == 0)
    }
}
