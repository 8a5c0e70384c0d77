import Domain
import Testing

@testable import Relay

@Suite struct ReadPoliciesTests {
    @Test func textsAreReadOverTheInstallationsPolicy() throws {
        var installation = Policy()
        installation.lifetime = 120
        let policies = ReadPolicies(installation)
        for _ in 0..<2 {
            #expect(try policies.policy(changedBy: #"{"login-limit":"7"}"#).loginLimit == 7)
            #expect(try policies.policy(changedBy: #"{"login-limit":"7"}"#).lifetime == 120)
            #expect(try policies.policy(changedBy: "{}") == installation)
        }
    }

    @Test func newPolicyOfTheInstallationAppliesToTextsThatWereRead() throws {
        let policies = ReadPolicies(Policy())
        _ = try policies.policy(changedBy: #"{"login-limit":"7"}"#)
        var installation = Policy()
        installation.lifetime = 99
        policies.replace(installation)
        let changed = try policies.policy(changedBy: #"{"login-limit":"7"}"#)
        #expect(changed.lifetime == 99)
        #expect(changed.loginLimit == 7)
        #expect(policies.installation == installation)
    }

    @Test func faultIsReportedEachTime() throws {
        let policies = ReadPolicies(Policy())
        for _ in 0..<2 {
            #expect(throws: Policy.Fault.self) { try policies.policy(changedBy: "[]") }
            var faults = 0
            _ = try policies.policy(changedBy: #"{"number-below":"100"}"#) { _ in faults += 1 }
            #expect(faults == 1)
        }
    }

    @Test func manyTextsAreRead() throws {
        let policies = ReadPolicies(Policy())
        for round in 0..<2 {
            for number in 0..<3000 {
                let lifetime = Policy.lifetimes.lowerBound + number % Policy.lifetimes.count
                let text = #"{"lifetime":"\#(lifetime)","unknown":"\#(number)"}"#
                #expect(try policies.policy(changedBy: text).lifetime == lifetime, "round \(round)")
            }
        }
    }
}
