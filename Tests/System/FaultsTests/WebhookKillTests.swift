import Glibc
import TestSupport
import Testing
import World

/// Kills the relay with SIGKILL at each step between the outbox and delivery of a webhook.
///
/// Every event arrives, with the same id and body each time. An event that follows from a login
/// never arrives before the login.
@Suite(.timeLimit(.minutes(60)), .mayBlock) struct WebhookKillTests {
    /// The moment at which the relay is killed.
    enum Moment: String, CaseIterable {
        /// A phone has answered, and nothing is written yet.
        case commit
        /// A random moment after the answer.
        case anywhere
        /// The website has the webhook, and has not answered.
        case sent
        /// The website has answered; the result is not yet (`unsettled`) or already (`settled`) in
        /// the store.
        case unsettled, settled
        /// The website has refused the webhook.
        case failed
        /// Another relay has leased the dead relay's entry, and the website has not answered.
        case leased
        /// The first of two webhooks is delivered, and the second is being sent.
        case between

        /// The smallest number of times that the event of the login arrives.
        var fewest: Int {
            switch self {
            case .sent, .failed: 2
            case .leased: 3
            case .commit, .anywhere, .unsettled, .settled, .between: 1
            }
        }
    }

    /// The number of kills on each store; `TWOEFAY_KILLS=200` sets it.
    private static let kills = getenv("TWOEFAY_KILLS").flatMap { Int(String(cString: $0)) } ?? 10

    @Test(arguments: KillTests.stores) func killedRelayLosesNoWebhookAndKeepsOrder(_ store: StoreKind) async throws {
        let seed =
            getenv("TWOEFAY_SEED").flatMap { UInt64(String(cString: $0)) } ?? SystemRandomness().number(below: .max)
        print("webhook kills on \(store): TWOEFAY_SEED=\(seed)")
        let fixture = try await WebhookKillFixture.start(store, seed: seed)
        while fixture.kills < Self.kills {
            for moment in Moment.allCases where fixture.kills < Self.kills { try await fixture.killRelay(at: moment) }
            try await fixture.check()
        }
        print(fixture.summary(store))
    }
}
