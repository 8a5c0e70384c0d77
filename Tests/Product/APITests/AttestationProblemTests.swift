import Attestation
import Domain
import JSON
import Relay
import TestSupport
import Testing

@testable import API

/// The problems of phones that are not attested, or do not meet the demands.
@Suite struct AttestationProblemTests {
    @Test(arguments: AttestationFault.allCases)
    func refusedAttestationNamesItsFaultAndWhatToDo(fault: AttestationFault) throws {
        let problem = Problem(.notAttested(fault))
        let texts = try TextLanguage.allCases.map { language in
            let body = problem.body(in: language)
            #expect(body["status"] == 403 && body["code"] == "not_attested")
            #expect(body["fault"] == .string(fault.rawValue))
            return try #require(body["detail"]?.string)
        }
        #expect(Set(texts).count == 2)
        #expect(texts[0].contains(fault.message))
        // No text is longer than a phone can show, and none is left without advice.
        #expect(texts.allSatisfy { $0.utf8.count < 400 && $0.contains(". ") })
    }

    @Test(arguments: PhoneDemands.Demand.allCases)
    func unmetDemandIsNamedWithWhatToDo(demand: PhoneDemands.Demand) throws {
        let problem = Problem(.postureUnmet([demand, .screenLock]))
        let texts = try TextLanguage.allCases.map { language in
            let body = problem.body(in: language)
            #expect(body["status"] == 403 && body["code"] == "posture_unmet")
            #expect(body["unmet"] == [.string(demand.rawValue), "screen_lock"])
            return try #require(body["detail"]?.string)
        }
        #expect(Set(texts).count == 2)
    }

    /// The page lists every word that phones and websites get.
    @Test func pageListsFaultsAndDemands() throws {
        let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
        let page = try TextFile.read("\(root)/docs/phones/attestation.md")
        for fault in AttestationFault.allCases { #expect(page.contains("`\(fault.rawValue)`"), "\(fault)") }
        for demand in PhoneDemands.Demand.allCases { #expect(page.contains("`\(demand.rawValue)`"), "\(demand)") }
        for verdict in AttestationVerdict.allCases { #expect(page.contains("`\(verdict.rawValue)`"), "\(verdict)") }
    }
}
