import Testing
import World

@Suite struct BackoffTests {
    private static let bases: [Int64] = [1000, 2000, 4000, 8000, 16_000, 32_000, 40_000, 40_000]

    @Test func backoffDoublesUpToItsLimit() {
        var backoff = Backoff()
        for base in Self.bases {
            let pause = backoff.failed(HighestChance())
            #expect(pause == .milliseconds(base * 3 / 2))
        }
    }

    @Test func jitterAddsUpToHalf() {
        var backoff = Backoff()
        for expected in Self.bases {
            let pause = backoff.failed(SystemRandomness()).wholeMilliseconds
            #expect((expected...expected * 3 / 2).contains(pause))
            #expect(pause <= 60_000)
        }
    }

    private func next(_ backoff: inout Backoff) -> Duration { backoff.failed(HighestChance()) }

    @Test func successResetsTheBackoff() {
        var backoff = Backoff()
        for _ in 0..<50 { _ = backoff.failed(HighestChance()) }
        backoff.succeeded()
        #expect(next(&backoff) == .milliseconds(1500))
        #expect(next(&backoff) == .milliseconds(3000))
    }

    @Test func firstFailuresMayBeFree() {
        var backoff = Backoff(free: 1)
        #expect(next(&backoff) == .zero)
        #expect(next(&backoff) == .milliseconds(1500))
        for _ in 0..<50 { _ = next(&backoff) }
        #expect(next(&backoff) == .seconds(60))
        backoff.succeeded()
        #expect(next(&backoff) == .zero)
    }
}

private struct HighestChance: Randomness {
    func fill(_ bytes: UnsafeMutableRawBufferPointer) { for index in bytes.indices { bytes[index] = 0xff } }
}
