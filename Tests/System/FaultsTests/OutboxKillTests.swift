import Glibc
import TestSupport
import Testing
import World

/// kill -9 at each step that a mail or a text message takes out of the outbox, with a real mail server at the other end:
/// whatever a website was told of arrives, what comes twice has one id and one code, and nothing is left or given up that
/// should not be.
@Suite(.timeLimit(.minutes(60)), .mayBlock) struct OutboxKillTests {
    /// What has happened when the relay is killed.
    enum Moment: String, CaseIterable {
        /// Somebody is to be asked, and nothing is written yet.
        case commit
        /// Whatever there is time for.
        case anywhere
        /// The website was told, and the mail server has not greeted yet.
        case asked
        /// The recipient was named; the mail server is about to ask for the content; it has all of it, and has not said so.
        case envelope, content, taken
        /// It has said so, and that could not be written yet; it is written.
        case unstored, stored
        /// A text message was refused, and the mail that follows begins.
        case next
        /// The gateway has the text message, and has not said so.
        case texted
        /// An announcement is written, and no round has taken it up.
        case announced
        /// The mail server is about to refuse one; it has, and that could not be written yet; it is dead.
        case refusing, dying, dead
        /// Another relay has taken up what a dead one left, and the mail server has not greeted it yet.
        case claimed

        /// How often what is sent arrives, where nothing else happens to it.
        var arrivals: ClosedRange<Int> {
            switch self {
            case .commit, .asked, .envelope, .content, .stored, .claimed: 1...1
            case .taken, .unstored, .texted: 2...2
            case .anywhere, .next, .announced: 1...2
            case .refusing, .dying, .dead: 0...0
            }
        }

        var isAnnouncement: Bool { [.announced, .refusing, .dying, .dead].contains(self) }
        var isRefused: Bool { arrivals == 0...0 }
    }

    /// So many kills on each store; `TWOEFAY_KILLS=200` does more.
    private static let kills =
        getenv("TWOEFAY_KILLS").flatMap { Int(String(cString: $0)) } ?? Moment.allCases.count + 1

    @Test(arguments: KillTests.stores) func killedRelayLosesNoMessageAndDuplicatesShareTheirID(_ store: StoreKind)
        async throws
    {
        let seed =
            getenv("TWOEFAY_SEED").flatMap { UInt64(String(cString: $0)) } ?? SystemRandomness().number(below: .max)
        print("outbox kills on \(store): TWOEFAY_SEED=\(seed)")
        let ward = try await OutboxKillFixture.start(store, seed: seed)
        while ward.kills < Self.kills {
            var errands: [ExpectedMessage] = []
            for moment in Moment.allCases where ward.kills < Self.kills {
                errands.append(try await ward.play(moment))
                // The only relay of a store sees at once that the one before it is dead.
                if store == .file { try await ward.settled(errands) }
            }
            try await ward.settled(errands)
            for errand in errands { try await ward.check(errand) }
            try ward.checkStore()
        }
        print(ward.summary(store))
    }
}
