import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// What /auth says of the tries under a challenge.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct StepTests {
    /// The ways in which a challenge ends, each with what it makes of a step that was under way.
    enum End: String, CaseIterable {
        case approved, denied, fraud, wrongNumber, expired, cancelled, superseded, locked, lateFraud

        var step: StepState {
            switch self {
            case .approved, .denied, .fraud, .wrongNumber: .answered
            case .expired: .expired
            case .cancelled, .superseded, .locked, .lateFraud: .skipped
            }
        }
    }

    private func end(_ asked: OpenedChallenge, _ end: End, _ cast: TwoWebsitesFixture) async throws {
        switch end {
        case .approved: _ = try await cast.rig.decide(.approve, asked.challenge, number: "47", by: cast.first)
        case .denied: _ = try await cast.rig.decide(.deny, asked.challenge, by: cast.first)
        case .fraud: _ = try await cast.rig.decide(.fraud, asked.challenge, by: cast.first)
        case .wrongNumber: _ = try await cast.rig.decide(.approve, asked.challenge, number: "48", by: cast.first)
        case .expired: cast.rig.time.advance(by: .seconds(300))
        case .cancelled: try await cast.rig.on { [shop = cast.shop] in try await $0.cancel(asked.challenge, by: shop) }
        case .superseded: _ = try await cast.ask()
        case .locked: #expect(try await cast.lock())
        case .lateFraud:
            let report = LateFraud(
                challenge: try await cast.earlier(than: asked), phone: cast.first.credential, at: cast.rig.time.now())
            let closed = try await cast.rig.on { relay in
                try await relay.store.freeze(report, as: relay.operations.new())
            }
            #expect(closed?.others == [asked.challenge])
        }
    }

    @Test(arguments: StoreKind.all, End.allCases)
    func stepEndsWithItsChallenge(kind: StoreKind, end way: End) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        // One that ended before, which nothing changes any more.
        let before = try await cast.ask()
        _ = try await cast.rig.decide(.deny, before.challenge, by: cast.first)
        let asked = try await cast.ask()
        await cast.rig.settled()
        #expect(try await cast.told(asked).steps.map(\.state) == [.sent])
        try await end(asked, way, cast)
        let told = try await cast.told(asked)
        #expect(told.result != .wait)
        #expect(told.steps.map(\.state) == [way.step])
        #expect(try await cast.told(before).steps.map(\.state) == [.answered])
    }

    /// The same before anything was sent, and after it was seen.
    @Test(arguments: StoreKind.all, [StepState.queued, .seen])
    func activeStepsAreSkippedAtTheEnd(kind: StoreKind, state: StepState) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        let asked = try await cast.ask()
        await cast.rig.settled()
        try cast.rig.execute("UPDATE step SET state = '\(state.rawValue)'")
        try await end(asked, .cancelled, cast)
        #expect(try await cast.told(asked).steps.map(\.state) == [.skipped])
    }

    /// An approval ends with the phone that may have given it.
    @Test(arguments: StoreKind.all) func stepsOfAVoidApprovalAreSkipped(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop("shop", ["number": "0"])
        let person = try await Person.registered("ada", at: shop, rig)
        let phone = try await person.bound(try TestPhone(pushToken: "push"), person.code)
        guard case .approvalRequired(let approval, _) = await person.refusedCode() else { throw RigFailure("?") }
        await rig.settled()
        try await rig.on { relay in try await relay.unbind(by: phone) }
        #expect(try await person.told(approval).reason == .cancelled)
        #expect(try await person.told(approval).steps.map(\.state) == [.skipped])
    }
}

extension TwoWebsitesFixture {
    /// A challenge of Ada's that has another end than fraud.
    fileprivate func earlier(than asked: OpenedChallenge) async throws -> ChallengeID {
        let sql = Statement("SELECT id FROM challenge WHERE decision = 'deny'")
        let rows = try rig.store.runBlocking(Script("test", reads: [BoundStatement(sql)]))
        let id = ChallengeID(try rows.row(0).blob(0))
        guard let id, id != asked.challenge else { throw RigFailure("no earlier challenge") }
        return id
    }
}
