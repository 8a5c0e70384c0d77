import Testing
import World

@testable import APNs

@Suite struct BackoffTests {
    private static let bases: [Int64] = [1000, 2000, 4000, 8000, 16_000, 32_000, 40_000, 40_000]

    @Test func doublesUpToItsLimit() {
        var backoff = Backoff()
        for base in Self.bases {
            let pause = backoff.failed(HighestChance())
            #expect(pause == .milliseconds(base * 3 / 2))
        }
    }

    @Test func chanceAddsUpToHalf() {
        var backoff = Backoff()
        for expected in Self.bases {
            let pause = backoff.failed(SystemRandomness()).wholeMilliseconds
            #expect((expected...expected * 3 / 2).contains(pause))
            #expect(pause <= 60_000)
        }
    }

    private func next(_ backoff: inout Backoff) -> Duration { backoff.failed(HighestChance()) }

    @Test func successStartsAnew() {
        var backoff = Backoff()
        for _ in 0..<50 { _ = backoff.failed(HighestChance()) }
        backoff.succeeded()
        #expect(next(&backoff) == .milliseconds(1500))
        #expect(next(&backoff) == .milliseconds(3000))
    }

    @Test func someFailuresMayBeFree() {
        var backoff = Backoff(free: 1)
        #expect(next(&backoff) == .zero)
        #expect(next(&backoff) == .milliseconds(1500))
        for _ in 0..<50 { _ = next(&backoff) }
        #expect(next(&backoff) == .seconds(60))
        backoff.succeeded()
        #expect(next(&backoff) == .zero)
    }
}

@Suite struct CredentialCircuitTests {
    private func at(_ seconds: Int64) -> Instant { Instant(nanoseconds: seconds * 1_000_000_000) }

    @Test func oneTrialAfterEachPause() {
        var circuit = CredentialCircuit()
        #expect(circuit.enter(at: at(0)) == .free)
        #expect(circuit.distrust("403 Forbidden", at: at(0)) == true)
        #expect(circuit.enter(at: at(29)) == .refused(reason: "403 Forbidden"))
        #expect(circuit.enter(at: at(30)) == .trial)
        #expect(circuit.enter(at: at(30)) == .refused(reason: "403 Forbidden"))
        #expect(circuit.enter(at: at(59)) == .refused(reason: "403 Forbidden"))
        #expect(circuit.enter(at: at(60)) == .trial, "a trial without an answer is followed by another")
    }

    @Test func theOperatorIsToldOnce() {
        var circuit = CredentialCircuit()
        #expect(circuit.distrust("403 Forbidden", at: at(0)) == true)
        #expect(circuit.distrust("403 Forbidden", at: at(1)) == false)
        #expect(circuit.reason == "403 Forbidden")
    }
}

@Suite struct TokenDoubtTests {
    @Test func fiveBadTokensInARow() {
        var doubt = TokenDoubt()
        for _ in 0..<5 {
            #expect(!doubt.doubts(.production))
            doubt.bad(.production)
        }
        #expect(doubt.doubts(.production))
        #expect(!doubt.doubts(.sandbox))
        doubt.accepted(.production)
        #expect(!doubt.doubts(.production))
    }
}
