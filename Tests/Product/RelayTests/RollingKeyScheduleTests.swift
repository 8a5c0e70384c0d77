import Testing
import World

@testable import Relay

/// The times of rolling keys, with a period of a day.
@Suite struct RollingKeyScheduleTests {
    private let schedule = RollingKeySchedule(period: .seconds(86_400))
    private let start = Timestamp(seconds: 1_800_000_000)

    private func next(_ eras: [KeyEra], at now: Timestamp, atOnce: Bool = false) throws -> KeyEra {
        try #require(schedule.next(.nonces, after: eras, using: eras, atOnce: atOnce, at: now))
    }

    @Test func firstKeyIsUsedAtOnce() throws {
        #expect(schedule.isDue([], at: start))
        let first = try next([], at: start)
        #expect(first.number == 1 && first.madeAt == start && first.startsAt == start)
        #expect(first.endsAt == start + .seconds(2 * 86_400))
        #expect(!schedule.isDue([first], at: start))
        #expect(RollingKeySchedule.current([first], at: start) == first)
    }

    @Test func nextKeyIsUsedFiveMinutesAfterItWasMade() throws {
        let first = try next([], at: start)
        let due = start + .seconds(86_400)
        #expect(!schedule.isDue([first], at: due - .milliseconds(1)))
        #expect(schedule.isDue([first], at: due))
        let second = try next([first], at: due)
        #expect(second.number == 2 && second.startsAt == due + .seconds(300))
        let both = [first, second]
        #expect(!schedule.isDue(both, at: due))
        #expect(RollingKeySchedule.current(both, at: second.startsAt - .milliseconds(1)) == first)
        #expect(RollingKeySchedule.current(both, at: second.startsAt) == second)
        // The first key is still accepted when the second one is used, for nearly a day.
        #expect(first.endsAt - second.startsAt == .seconds(86_400 - 300))
    }

    @Test func keyThatReplacesAllIsUsedAtOnce() throws {
        let first = try next([], at: start)
        let second = try next([first], at: start + .seconds(60), atOnce: true)
        #expect(second.number == 2 && second.startsAt == start + .seconds(60))
    }

    @Test func keyAfterALongStopIsUsedAtOnce() throws {
        let first = try next([], at: start)
        let late = first.endsAt
        #expect(RollingKeySchedule.current([first], at: late) == nil)
        #expect(schedule.isDue([first], at: late))
        #expect(try next([first], at: late).startsAt == late)
    }

    /// A key from a clock that was ahead neither delays the next key, nor makes one necessary, nor is
    /// used before its time.
    @Test func keyOfAWrongClockDelaysNothing() throws {
        let first = try next([], at: start)
        let wrong = try next([first], at: start + .seconds(10 * 86_400))
        #expect(schedule.isDue([wrong], at: start))
        #expect(!schedule.isDue([first, wrong], at: start))
        #expect(schedule.isDue([first, wrong], at: start + .seconds(86_400)))
        #expect(RollingKeySchedule.current([first, wrong], at: start) == first)
        let third = try next([first, wrong], at: start)
        #expect(third.number == 3)
        #expect(!schedule.isDue([first, wrong, third], at: start))
        // A clock that is ahead by less than a period makes no further key necessary.
        let ahead = try next([first], at: start + .seconds(3600))
        #expect(!schedule.isDue([first, ahead], at: start))
    }

    @Test func clockThatWentBackUsesTheOldestKey() throws {
        let first = try next([], at: start)
        let second = try next([first], at: start + .seconds(86_400))
        #expect(RollingKeySchedule.current([second, first], at: start - .seconds(3600)) == first)
    }

    @Test func noNumberFollowsTheHighest() {
        let last = KeyEra(
            kind: .nonces, number: .max, madeAt: start, startsAt: start, endsAt: start + .seconds(86_400))
        #expect(schedule.next(.nonces, after: [last], using: [last], atOnce: false, at: start) == nil)
    }

    @Test func periodIsNeverShorterThanAnHour() {
        #expect(RollingKeySchedule(period: .seconds(1)).period == .seconds(3600))
    }
}
