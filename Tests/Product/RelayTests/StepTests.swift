import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// The steps of a challenge, as /auth returns them.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct StepTests {
    /// The ways in which a challenge ends, with the resulting state of a step in progress.
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

    private func end(_ asked: OpenedChallenge, _ end: End, _ fixture: TwoWebsitesFixture) async throws {
        switch end {
        case .approved: _ = try await fixture.rig.decide(.approve, asked.challenge, number: "47", by: fixture.first)
        case .denied: _ = try await fixture.rig.decide(.deny, asked.challenge, by: fixture.first)
        case .fraud: _ = try await fixture.rig.decide(.fraud, asked.challenge, by: fixture.first)
        case .wrongNumber: _ = try await fixture.rig.decide(.approve, asked.challenge, number: "48", by: fixture.first)
        case .expired: fixture.rig.time.advance(by: .seconds(300))
        case .cancelled:
            try await fixture.rig.on { [shop = fixture.shop] in try await $0.cancel(asked.challenge, by: shop) }
        case .superseded: _ = try await fixture.ask()
        case .locked: #expect(try await fixture.lock())
        case .lateFraud:
            let report = LateFraud(
                challenge: try await fixture.earlier(than: asked), phone: fixture.first.credential,
                at: fixture.rig.time.now())
            let closed = try await fixture.rig.on { relay in
                try await relay.store.freeze(report, as: relay.operations.new())
            }
            #expect(closed?.others == [asked.challenge])
        }
    }

    @Test(arguments: StoreKind.all, End.allCases)
    func stepEndsWithItsChallenge(kind: StoreKind, end reason: End) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        // A challenge that ended earlier and does not change any more.
        let before = try await fixture.ask()
        _ = try await fixture.rig.decide(.deny, before.challenge, by: fixture.first)
        let asked = try await fixture.ask()
        await fixture.rig.settled()
        #expect(try await fixture.reported(asked).steps.map(\.state) == [.sent])
        try await end(asked, reason, fixture)
        let reported = try await fixture.reported(asked)
        #expect(reported.result != .wait)
        #expect(reported.steps.map(\.state) == [reason.step])
        #expect(try await fixture.reported(before).steps.map(\.state) == [.answered])
    }

    /// The same before the push was sent, and after it was seen.
    @Test(arguments: StoreKind.all, [StepState.queued, .seen])
    func activeStepsAreSkippedAtTheEnd(kind: StoreKind, state: StepState) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        await fixture.rig.settled()
        try fixture.rig.execute("UPDATE step SET state = '\(state.rawValue)'")
        try await end(asked, .cancelled, fixture)
        #expect(try await fixture.reported(asked).steps.map(\.state) == [.skipped])
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
        #expect(try await person.reported(approval).reason == .cancelled)
        #expect(try await person.reported(approval).steps.map(\.state) == [.skipped])
    }
}

extension TwoWebsitesFixture {
    /// Returns Ada's earlier challenge, which ended with a denial.
    fileprivate func earlier(than asked: OpenedChallenge) async throws -> ChallengeID {
        let sql = Statement("SELECT id FROM challenge WHERE decision = 'deny'")
        let rows = try rig.store.runBlocking(Script("test", reads: [sql()]))
        let id = ChallengeID(try rows.row(0).blob("id"))
        guard let id, id != asked.challenge else { throw RigFailure("no earlier challenge") }
        return id
    }
}
