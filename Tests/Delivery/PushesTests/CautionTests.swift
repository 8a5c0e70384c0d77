import Testing
import World

@testable import Pushes

@Suite struct CredentialCircuitTests {
    private func at(_ seconds: Int64) -> Instant { Instant(nanoseconds: seconds * 1_000_000_000) }

    @Test func openCircuitAllowsOneProbePerPause() {
        var circuit = CredentialCircuitBreaker()
        #expect(circuit.enter(at: at(0)) == .free)
        #expect(circuit.distrust("403 Forbidden", at: at(0)) == true)
        #expect(circuit.enter(at: at(29)) == .refused(reason: "403 Forbidden"))
        #expect(circuit.enter(at: at(30)) == .trial)
        #expect(circuit.enter(at: at(30)) == .refused(reason: "403 Forbidden"))
        #expect(circuit.enter(at: at(59)) == .refused(reason: "403 Forbidden"))
        #expect(circuit.enter(at: at(60)) == .trial, "a trial without an answer is followed by another")
    }

    @Test func openCircuitIsLoggedOnce() {
        var circuit = CredentialCircuitBreaker()
        #expect(circuit.distrust("403 Forbidden", at: at(0)) == true)
        #expect(circuit.distrust("403 Forbidden", at: at(1)) == false)
        #expect(circuit.reason == "403 Forbidden")
    }
}

@Suite struct TokenDoubtTests {
    @Test func fiveBadTokensInARowRaiseDoubt() {
        var detector = TokenMismatchDetector()
        for _ in 0..<5 {
            #expect(!detector.suspects(.production))
            detector.bad(.production)
        }
        #expect(detector.suspects(.production))
        #expect(!detector.suspects(.sandbox))
        detector.accepted(.production)
        #expect(!detector.suspects(.production))
    }
}
