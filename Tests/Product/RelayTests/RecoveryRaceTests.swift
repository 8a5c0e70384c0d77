import Bytes
import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// Steps of recoveries at two relays at the same time, over one store, and what ended recoveries have
/// created.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RecoveryRaceTests {
    private static let day = Duration.seconds(86_400)
    private static let stores: [StoreKind] = [.file, .mariadb]

    /// Runs two steps at once. Returns whether each succeeded.
    private func race(
        _ fixture: RecoveryFixture, _ one: @escaping @Sendable () async throws -> Void,
        _ other: @escaping @Sendable () async throws -> Void
    ) async -> [Bool] {
        async let first = refusal { try await one() } == nil
        async let second = refusal { try await other() } == nil
        let outcome = await [first, second]
        await fixture.rig.settled()
        return outcome
    }

    /// Another relay over a store of its own.
    private func secondRelay(_ fixture: RecoveryFixture) throws -> (store: Store, relay: Relay) {
        let store = try Store.watched(at: fixture.rig.url, rows: RelayRig.rowAuthenticator()) {
            (steps, session) throws(SessionFailure) in try session.run(steps)
        }
        return (store, try fixture.rig.relay(over: store))
    }

    /// The owner cancels while the thief types the first code of the new app.
    @Test(arguments: stores) func cancelledRecoveryReplacesNoApp(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let (rig, shop) = (fixture.rig, fixture.shop)
        let (store, other) = try secondRelay(fixture)
        defer { store.close() }
        var app = fixture.app
        for round in 0..<6 {
            let handle = try await fixture.opened()
            let id = try await fixture.proved(handle, by: round).recovery.id
            rig.time.advance(by: Self.day)
            let setup = try await fixture.finish(handle)
            let code = try fixture.ada.code(setup.secret)
            _ = await race(fixture) {
                guard try await fixture.ada.confirm(code) else { throw Refusal.notFound }
            } _: {
                try await rig.on { _ in try await other.cancelRecovery(id, ofUser: "ada", by: shop) }
            }
            let phase = try await fixture.state(handle).phase
            #expect([.done, .cancelled].contains(phase))
            if phase == .done { app = setup.secret }
            rig.time.advance(by: .seconds(60))
            // The present app logs in, and no second one is left.
            #expect(try await fixture.logsIn(app))
            #expect(try rig.count("SELECT count(*) FROM factor WHERE kind = 'totp'") == 1)
            let (done, cancelled) = try (fixture.events("recovery.done")[0], fixture.events("recovery.cancelled")[0])
            #expect(done + cancelled == Int64(round + 1))
        }
    }

    /// The owner cancels while the thief asks for the new secret.
    @Test(arguments: stores) func cancelledRecoveryLeavesNoSecret(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let (rig, shop) = (fixture.rig, fixture.shop)
        let (store, other) = try secondRelay(fixture)
        defer { store.close() }
        for round in 0..<6 {
            let handle = try await fixture.opened()
            let id = try await fixture.proved(handle, by: round).recovery.id
            rig.time.advance(by: Self.day)
            let outcome = await race(fixture) {
                _ = try await fixture.finish(handle)
            } _: {
                try await rig.on { _ in try await other.cancelRecovery(id, ofUser: "ada", by: shop) }
            }
            #expect(outcome[1])
            #expect(try await fixture.state(handle).phase == .cancelled)
            #expect(try rig.count("SELECT count(*) FROM factor WHERE state = 'waiting'") == 0)
        }
    }

    /// Two phones of the owner answer differently.
    @Test(arguments: stores) func oneAnswerAboutTheWaitCounts(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, ["devices": "2"])
        let (rig, ada) = (fixture.rig, fixture.ada)
        let (store, other) = try secondRelay(fixture)
        defer { store.close() }
        let first = try #require(fixture.phone)
        let second = try await ada.bound(try TestPhone(pushToken: "second"), try await ada.furtherCode())
        for round in 0..<6 {
            // Beyond the limit of links.
            rig.time.advance(by: NewRecovery.window)
            let handle = try await fixture.opened()
            let asked = try #require(try await fixture.proved(handle, by: round).challenge)
            _ = await race(fixture) {
                _ = try await ada.decide(asked, .approve, by: first)
            } _: {
                let answer = PhoneAnswer(approves: false, number: nil)
                _ = try await rig.on { _ in try await other.answer(asked, answer, by: second) }
            }
            let result = try await ada.reported(asked).result
            #expect(try await fixture.state(handle).phase == (result == .success ? .ready : .cancelled))
        }
    }

    @Test(arguments: stores) func linkIsHandedInAtOneRelay(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let (rig, shop) = (fixture.rig, fixture.shop)
        let (store, other) = try secondRelay(fixture)
        defer { store.close() }
        for round in 0..<4 {
            _ = try await fixture.start()
            let token = try fixture.token()
            let outcome = await race(fixture) {
                _ = try await fixture.open(token)
            } _: {
                _ = try await rig.on { _ in
                    try await other.openRecovery(token: token, by: shop, as: other.operations.new())
                }
            }
            #expect(outcome.count { $0 } == 1)
            #expect(
                try rig.count("SELECT count(*) FROM audit WHERE event = 'recovery.opened'") == Int64(round + 1))
        }
    }

    /// Two links of one factor are proved at once. One of the recoveries ends.
    @Test(arguments: stores) func oneOfTwoRecoveriesRemains(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let (rig, shop) = (fixture.rig, fixture.shop)
        let (store, other) = try secondRelay(fixture)
        defer { store.close() }
        let handles = [try await fixture.opened(), try await fixture.opened()]
        var challenges: [ChallengeID] = []
        for (index, handle) in handles.enumerated() {
            let challenge = try await fixture.asked(handle)
            _ = try await fixture.answer(challenge, fixture.codes[index])
            challenges.append(challenge)
        }
        let (mine, others) = (challenges[0], challenges[1])
        _ = await race(fixture) {
            _ = try await fixture.prove(handles[0], mine)
        } _: {
            _ = try await rig.on { _ in
                try await other.proveRecovery(
                    handle: handles[1], approval: others, by: shop, as: other.operations.new())
            }
        }
        var phases: [RecoveryPhase] = []
        for handle in handles { phases.append(try await fixture.state(handle).phase) }
        #expect(phases.contains(.waiting) && phases.contains(.cancelled), "\(phases)")
    }

    /// At another node of a cluster the factor may be there still when its recovery has ended.
    @Test(arguments: StoreKind.all, [true, false])
    func factorOfAnEndedRecoveryIsNotConfirmed(kind: StoreKind, isCancelled: Bool) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let handle = try await fixture.opened()
        _ = try await fixture.proved(handle)
        fixture.rig.time.advance(by: Self.day + RecoveryLife.changeLife - .seconds(1))
        let setup = try await fixture.finish(handle)
        let user = try await fixture.id()
        let waiting = try await fixture.rig.on { relay in
            try #require(try await relay.factors(of: user).first { $0.kind == .totp && $0.state == .waiting })
        }
        if isCancelled {
            try fixture.rig.execute("UPDATE recovery SET state = 'cancelled'")
        } else {
            fixture.rig.time.advance(by: .seconds(1))
        }
        let code = try fixture.ada.code(setup.secret)
        guard case .conflict? = await refusal({ try await fixture.ada.confirm(code) }) else {
            Issue.record("the first code of an ended recovery is not refused as such")
            return
        }
        // A relay that has read the factor before.
        let rig = fixture.rig
        let outcome = try await rig.on { relay in
            try await rig.store.confirm(
                waiting, of: user, failures: 0, counter: 1, isVouchedFor: true, at: rig.time.now(),
                as: relay.operations.new())
        }
        #expect(outcome != .done)
        #expect(try await fixture.logsIn(fixture.app))
    }

    /// The thief has a code for a phone when the owner proves a recovery of their own.
    ///
    /// - Parameter isKept: whether the code is there still, as at another node of a cluster.
    @Test(arguments: StoreKind.all, [false, true])
    func codeOfAnEndedRecoveryBindsNoPhone(kind: StoreKind, isKept: Bool) async throws {
        let fixture = try await RecoveryFixture(kind)
        let shop = fixture.shop
        let thief = try await fixture.opened(.push)
        _ = try await fixture.proved(thief)
        fixture.rig.time.advance(by: Self.day)
        let code = try await fixture.rig.on { relay in
            try await relay.recoverPhone(handle: thief, by: shop, as: relay.operations.new())
        }.code
        _ = try await fixture.proved(try await fixture.opened(.push), by: 1)
        if isKept { try fixture.rig.execute("UPDATE activation SET used_at = NULL WHERE approval = 'recovery'") }
        #expect(await fixture.ada.bind(try TestPhone(pushToken: "thief"), code).refusal == .unauthenticated)
        #expect(try fixture.rig.devices(.active) == 1)
    }
}
