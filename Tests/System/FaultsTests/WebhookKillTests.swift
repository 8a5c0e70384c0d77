import Glibc
import TestSupport
import Testing
import World

/// kill -9 at each step that an event takes out of the outbox to its website: each arrives, always under one id and in the
/// same words, and what followed from a login never before the login itself.
@Suite(.timeLimit(.minutes(60)), .mayBlock) struct WebhookKillTests {
    /// What has happened when the relay is killed.
    enum Moment: String, CaseIterable {
        /// A phone answers, and nothing is written yet.
        case commit
        /// Whatever there is time for.
        case anywhere
        /// The website has the call, and says nothing yet.
        case sent
        /// It has answered, and that could not be written yet; it is written.
        case unsettled, settled
        /// It has refused the call.
        case failed
        /// Another relay has taken up what a dead one left, and the website says nothing yet.
        case claimed
        /// The first of two calls has arrived, and the second is on its way.
        case between

        /// How often a login arrives at the least.
        var fewest: Int {
            switch self {
            case .sent, .failed: 2
            case .claimed: 3
            case .commit, .anywhere, .unsettled, .settled, .between: 1
            }
        }
    }

    /// So many kills on each store; `TWOEFAY_KILLS=200` does more.
    private static let kills = getenv("TWOEFAY_KILLS").flatMap { Int(String(cString: $0)) } ?? 10

    @Test(arguments: KillTests.stores) func killedRelayLosesNoWebhookAndKeepsOrder(_ store: StoreKind) async throws {
        let seed =
            getenv("TWOEFAY_SEED").flatMap { UInt64(String(cString: $0)) } ?? SystemRandomness().number(below: .max)
        print("webhook kills on \(store): TWOEFAY_SEED=\(seed)")
        let ward = try await WebhookKillFixture.start(store, seed: seed)
        while ward.kills < Self.kills {
            for moment in Moment.allCases where ward.kills < Self.kills { try await ward.play(moment) }
            try await ward.check()
        }
        print(ward.summary(store))
    }
}
