import DeliveryOutcomes
import Testing
import World

@testable import Pushes

/// Apple's two hosts: each phone names its host, and a fault of one host does not affect the other.
@Suite struct TwoHostsTests {
    @Test func credentialRefusedByOneHostIsUsedForTheOther() throws {
        let stand = try PoolBench()
        let first = stand.send(.sandbox)
        stand.open()
        try stand.answer(stand.wire(.sandbox), 403, "BadCertificateEnvironment")
        #expect(stand.outcomes(first) == [.misconfigured(.service, reason: "BadCertificateEnvironment")])
        let second = stand.send(.sandbox)
        #expect(
            stand.outcomes(second) == [.misconfigured(.service, reason: "BadCertificateEnvironment")],
            "not tried again at once")
        #expect(stand.shared.fault == nil, "everybody else is served")
        let other = stand.send(.production)
        stand.open()
        try stand.answer(stand.wire())
        #expect(stand.outcomes(other) == [.accepted(by: nil)])
        let third = stand.send(.sandbox)
        #expect(
            stand.outcomes(third) == [.misconfigured(.service, reason: "BadCertificateEnvironment")],
            "that production takes it says nothing about the sandbox")
    }

    @Test func configuredHostDecidesTheCredentialState() throws {
        let stand = try PoolBench()
        let first = stand.send(.production)
        stand.open()
        try stand.answer(stand.wire(), 403, "Forbidden")
        #expect(stand.outcomes(first) == [.misconfigured(.service, reason: "Forbidden")])
        #expect(stand.shared.fault == "Forbidden")
        let other = stand.send(.sandbox)
        stand.open()
        try stand.answer(stand.wire(.sandbox))
        #expect(stand.outcomes(other) == [.accepted(by: nil)])
        #expect(stand.shared.fault == "Forbidden", "the sandbox cannot end that")
        stand.pass(.seconds(30))
        let trial = stand.send(.production)
        try stand.answer(stand.wire())
        #expect(stand.outcomes(trial) == [.accepted(by: nil)])
        #expect(stand.shared.fault == nil)
    }

    @Test func unreachableSandboxIsNoFault() throws {
        let stand = try PoolBench()
        let first = stand.send(.production)
        stand.open()
        try stand.answer(stand.wire())
        #expect(stand.outcomes(first) == [.accepted(by: nil)])
        stand.send(.sandbox)
        let sandbox = try stand.wire(.sandbox)
        stand.enter { sandbox.refuse() }
        #expect(stand.shared.withHostHealth(.sandbox) { $0.fault } != nil)
        #expect(stand.shared.fault == nil)
    }
}
