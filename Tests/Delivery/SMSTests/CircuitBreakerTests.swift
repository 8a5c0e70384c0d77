import Testing
import World

@testable import SMS

@Suite struct CircuitBreakerTests {
    private static let nine = Instant(nanoseconds: 0)

    /// Asks the breaker for one message at each moment, and returns whether the message may be sent.
    private func admitted(_ breaker: inout CircuitBreaker, at moments: Instant...) -> [Bool] {
        moments.map { breaker.admit(at: $0) }
    }

    private func after(_ seconds: Int64) -> Instant { Self.nine + .seconds(seconds) }

    @Test func failuresInARowOpenTheCircuit() {
        var breaker = CircuitBreaker()
        for count in 1...3 {
            let each = admitted(&breaker, at: Self.nine)
            #expect(each == [true], "\(count)")
            breaker.fail(at: Self.nine)
        }
        #expect(breaker.isOpen)
        let early = admitted(&breaker, at: after(4))
        #expect(early == [false])
        #expect(breaker.wait(at: after(1)) == .seconds(4))
    }

    @Test func successResetsTheFailureCount() {
        var breaker = CircuitBreaker()
        for _ in 1...10 {
            breaker.fail(at: Self.nine)
            breaker.fail(at: Self.nine)
            breaker.succeed()
        }
        let forgiven = admitted(&breaker, at: Self.nine)
        #expect(forgiven == [true])
        #expect(!breaker.isOpen)
    }

    @Test func openCircuitAllowsOneProbe() {
        var breaker = CircuitBreaker()
        breaker.fail(forCertain: true, at: Self.nine)
        let early = admitted(&breaker, at: after(4))
        #expect(early == [false])
        let trial = admitted(&breaker, at: after(5))
        #expect(trial == [true])
        let others = admitted(&breaker, at: after(5), after(20))
        #expect(others == [false, false])
        breaker.succeed()
        let again = admitted(&breaker, at: after(20), after(20))
        #expect(again == [true, true])
    }

    @Test func circuitPauseGrowsToFiveMinutes() {
        var breaker = CircuitBreaker()
        breaker.fail(forCertain: true, at: Self.nine)
        var now = Self.nine
        var pauses: [Duration] = []
        for _ in 1...9 {
            let wait = breaker.wait(at: now) ?? .zero
            pauses.append(wait)
            now = now + wait
            let isAdmitted = breaker.admit(at: now)
            #expect(isAdmitted)
            breaker.fail(at: now)
        }
        #expect(pauses == [5, 10, 20, 40, 80, 160, 300, 300, 300].map { .seconds($0) })
    }

    @Test func messageDuringAProbeWaitsForIt() {
        var breaker = CircuitBreaker()
        breaker.fail(forCertain: true, asked: .seconds(300), at: Self.nine)
        #expect(breaker.wait(at: after(299)) == .seconds(1))
        let trial = admitted(&breaker, at: after(300))
        #expect(trial == [true])
        #expect(breaker.wait(at: after(300)) == .seconds(5))
        breaker.fail(at: after(310))
        #expect(breaker.wait(at: after(310)) == .seconds(10))
    }

    @Test func retryAfterLengthensThePause() {
        var breaker = CircuitBreaker()
        breaker.fail(asked: .seconds(90), at: Self.nine)
        #expect(breaker.wait(at: Self.nine) == .seconds(90))
        // A requested pause of hours is limited.
        breaker = CircuitBreaker()
        breaker.fail(asked: .seconds(36_000), at: Self.nine)
        #expect(breaker.wait(at: Self.nine) == .seconds(300))
    }

    @Test func lateFailureDoesNotLengthenThePause() {
        var breaker = CircuitBreaker()
        for _ in 1...3 { breaker.fail(at: Self.nine) }
        for second in 1...4 { breaker.fail(at: after(Int64(second))) }
        let trial = admitted(&breaker, at: after(5))
        #expect(trial == [true])
        // A probe without a recorded outcome.
        let soon = admitted(&breaker, at: after(64))
        #expect(soon == [false])
        let later = admitted(&breaker, at: after(65))
        #expect(later == [true])
        breaker.abandon(at: after(65))
        let another = admitted(&breaker, at: after(65))
        #expect(another == [true])
    }
}
