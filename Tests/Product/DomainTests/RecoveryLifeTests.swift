import Testing
import World

@testable import Domain

/// The states of a recovery, by its stored values and the time.
@Suite struct RecoveryLifeTests {
    private static let start = Timestamp(seconds: 1_800_000_000)
    private static let day = Duration.seconds(86_400)

    @Test func lifeGoesFromTheLinkToTheChange() throws {
        let sent = RecoveryLife.begun(at: Self.start)
        #expect(sent.phase(at: Self.start + .seconds(899)) == .sent)
        #expect(sent.phase(at: Self.start + .seconds(900)) == .expired)
        let opened = try sent.opened(at: Self.start + .seconds(60))
        #expect(opened.phase(at: Self.start + .seconds(61)) == .opened && opened.readyAt == nil)
        #expect(opened.expiresAt == Self.start + .seconds(3660))
        let at = Self.start + .seconds(120)
        let proved = try opened.proved(by: .totp, wait: Self.day, at: at).announced(at: at, since: at)
        let ready = at + Self.day
        #expect(proved.readyAt == ready)
        #expect(proved.phase(at: ready - .milliseconds(1)) == .waiting)
        #expect(proved.phase(at: ready) == .ready)
        #expect(proved.phase(at: ready + .seconds(7 * 86_400)) == .expired)
        #expect(throws: RecoveryLife.Impossible(phase: .waiting)) { try proved.requireReady(at: ready - .seconds(1)) }
        try proved.requireReady(at: ready)
    }

    @Test func phoneNeedsNoWait() throws {
        let opened = try RecoveryLife.begun(at: Self.start).opened(at: Self.start)
        let proved = try opened.proved(by: .phone, wait: Self.day, at: Self.start)
        #expect(proved.phase(at: Self.start) == .ready)
    }

    @Test func noStepIsPossibleTwice() throws {
        let sent = RecoveryLife.begun(at: Self.start)
        let opened = try sent.opened(at: Self.start)
        #expect(throws: RecoveryLife.Impossible(phase: .opened)) { try opened.opened(at: Self.start) }
        #expect(throws: RecoveryLife.Impossible(phase: .sent)) {
            try sent.proved(by: .totp, wait: Self.day, at: Self.start)
        }
        let proved = try opened.proved(by: .totp, wait: Self.day, at: Self.start)
        #expect(throws: RecoveryLife.Impossible(phase: .waiting)) {
            try proved.proved(by: .totp, wait: Self.day, at: Self.start)
        }
        for state in [RecoveryState.done, .cancelled] {
            let ended = RecoveryLife(state: state, readyAt: Self.start, expiresAt: Self.start + Self.day)
            #expect(!ended.isOpen(at: Self.start))
            #expect(throws: RecoveryLife.Impossible.self) { try ended.requireReady(at: Self.start) }
            #expect(throws: RecoveryLife.Impossible.self) { try ended.opened(at: Self.start) }
        }
    }

    /// Nobody uses the time that somebody else has waited.
    @Test func continuedRecoveryWaitsAnew() throws {
        let later = Self.start + Self.day + .seconds(3600)
        let again = try RecoveryLife.begun(at: later).opened(at: later)
        #expect(again.phase(at: later) == .opened && again.readyAt == nil)
        let proved = try again.proved(by: .recovery, wait: Self.day, at: later).announced(at: later, since: later)
        #expect(proved.phase(at: later + Self.day - .milliseconds(1)) == .waiting)
        #expect(proved.phase(at: later + Self.day) == .ready)
    }

    /// The owner has the whole wait, also if the mail server was away.
    @Test func waitBeginsWithTheAnnouncement() throws {
        let opened = try RecoveryLife.begun(at: Self.start).opened(at: Self.start)
        let proved = try opened.proved(by: .totp, wait: Self.day, at: Self.start)
        #expect(proved.phase(at: Self.start + Self.day) == .waiting)
        #expect(proved.phase(at: proved.expiresAt) == .expired)
        let late = Self.start + Self.day * 3
        let announced = proved.announced(at: late, since: Self.start)
        #expect(announced.readyAt == late + Self.day && announced.announcedAt == late)
        #expect(announced.expiresAt == late + Self.day + RecoveryLife.changeLife)
        // Only the first one counts.
        #expect(announced.announced(at: late + Self.day, since: Self.start) == announced)
        #expect(opened.announced(at: late, since: Self.start) == opened)
        // A recovery that has expired does not begin again.
        #expect(proved.announced(at: proved.expiresAt, since: Self.start) == proved)
    }

    @Test func mailProvesNothing() {
        #expect(RecoveryProof(.mail) == nil)
        #expect(Factor.choices.compactMap { RecoveryProof($0) } == [.phone, .totp, .hotp, .sms, .recovery])
    }
}
