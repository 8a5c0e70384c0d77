import Testing
import TwoefayClient

/// The cases of clients/conformance: good relays and lying ones. No case sleeps.
@Suite("Conformance") struct ConformanceTests {
    @Test func everyCaseHasItsOutcome() async throws {
        let cases = try ConformanceCase.all()
        #expect(cases.count > 700, "cases are missing")
        for one in cases { try await CaseRun(one).compare() }
    }
}

/// The record of a login. Other tests of this module have their own `Login`.
typealias RecordedLogin = TwoefayClient.Login
