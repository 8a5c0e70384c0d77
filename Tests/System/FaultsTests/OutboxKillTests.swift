import Glibc
import TestSupport
import Testing
import World

/// Kills the relay with SIGKILL at each step between the outbox and delivery of a mail or text
/// message. A real mail server receives the mails.
///
/// Every message whose login a website knows arrives. Duplicates have the same id and code. No entry
/// stays in the outbox, and none becomes a dead letter without a refusal.
@Suite(.timeLimit(.minutes(60)), .mayBlock) struct OutboxKillTests {
    /// The moment at which the relay is killed.
    enum Moment: String, CaseIterable {
        /// A login was requested, and nothing is written yet.
        case commit
        /// A random moment after the request.
        case anywhere
        /// The website has its answer, and the mail server has not sent its greeting.
        case asked
        /// The mail server has not answered the recipient (`envelope`), the DATA command
        /// (`content`) or the complete message (`taken`).
        case envelope, content, taken
        /// The mail server has accepted the message; the result is not yet (`unstored`) or already
        /// (`stored`) in the store.
        case unstored, stored
        /// A text message was refused, and the mail that replaces it begins.
        case next
        /// The gateway has the text message, and has not answered.
        case texted
        /// A notification is in the outbox, and no relay has leased it.
        case announced
        /// The mail server has not yet refused the notification (`refusing`), has refused it but
        /// the result is not in the store (`dying`), or the notification is a dead letter (`dead`).
        case refusing, dying, dead
        /// Another relay has leased the dead relay's entry, and the mail server has not greeted
        /// it.
        case leased

        /// The number of times that the message arrives, unless a second kill interferes.
        var arrivals: ClosedRange<Int> {
            switch self {
            case .commit, .asked, .envelope, .content, .stored, .leased: 1...1
            case .taken, .unstored, .texted: 2...2
            case .anywhere, .next, .announced: 1...2
            case .refusing, .dying, .dead: 0...0
            }
        }

        var isAnnouncement: Bool { [.announced, .refusing, .dying, .dead].contains(self) }
        var isRefused: Bool { arrivals == 0...0 }
    }

    /// The number of kills on each store; `TWOEFAY_KILLS=200` sets it.
    private static let kills =
        getenv("TWOEFAY_KILLS").flatMap { Int(String(cString: $0)) } ?? Moment.allCases.count + 1

    @Test(arguments: KillTests.stores) func killedRelayLosesNoMessageAndDuplicatesShareTheirID(_ store: StoreKind)
        async throws
    {
        let seed =
            getenv("TWOEFAY_SEED").flatMap { UInt64(String(cString: $0)) } ?? SystemRandomness().number(below: .max)
        print("outbox kills on \(store): TWOEFAY_SEED=\(seed)")
        let fixture = try await OutboxKillFixture.start(store, seed: seed)
        while fixture.kills < Self.kills {
            var messages: [ExpectedMessage] = []
            for moment in Moment.allCases where fixture.kills < Self.kills {
                messages.append(try await fixture.killRelay(at: moment))
                // The only relay of a store knows at once that its predecessor is dead.
                if store == .file { try await fixture.settled(messages) }
            }
            try await fixture.settled(messages)
            for message in messages { try await fixture.check(message) }
            try fixture.checkStore()
        }
        print(fixture.summary(store))
    }
}
