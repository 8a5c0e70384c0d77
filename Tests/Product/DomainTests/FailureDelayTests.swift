import Domain
import Testing
import World

struct FailureDelayTests {
    private static let now = Timestamp(seconds: 1_800_000_000)

    /// Three failures cause a delay of fifteen seconds after the last one.
    @Test(
        arguments: [
            (-14_999, 1), (-15_000, nil), (-3_600_000, nil), (0, 15_000),
            // The clocks of two relays differ a little, or a clock was set.
            (10_000, 15_000), (15_000, 15_000), (15_001, nil), (3_600_000, nil),
        ] as [(Int, Int?)])
    func delayIsBoundedWhateverTheClockDoes(lastAt: Int, left: Int?) {
        let wait = FailureDelay.wait(after: 3, lastAt: Self.now + .milliseconds(lastAt), at: Self.now)
        #expect(wait == left.map { .milliseconds($0) })
    }

    @Test func noFailuresMeanNoDelay() {
        #expect(FailureDelay.wait(after: 0, lastAt: Self.now, at: Self.now) == nil)
        #expect(FailureDelay.wait(after: 1, lastAt: nil, at: Self.now) == nil)
    }
}
