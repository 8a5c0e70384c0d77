import Domain
import JSON
import Relay
import TestSupport
import Testing

/// The developer of a phone's app learns from the answer which member of a signed decision is wrong.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct MalformedDecisionTests {
    private static let changes: [(point: String, change: @Sendable (inout JSONObject) -> Void)] = [
        ("must have the number 1 as its v", { $0["v"] = 2 }),
        ("must have the number 1 as its v", { $0["v"] = "1" }),
        ("must have one of approve, deny, fraud as its decision", { $0["decision"] = "Approve" }),
        ("must have one of none, passcode, biometric as its uv", { $0["uv"] = "face" }),
        ("as its iat", { $0["iat"] = "1800000000" }),
        ("as its number", { $0["number"] = 47 }),
        ("as its place", { $0["place"] = "Berlin" }),
        ("as its uv_age", { $0["uv_age"] = -1 }),
        ("as its posture", { $0["posture"] = "good" }),
        ("has no claim nonce", { $0["nonce"] = nil }),
        ("the claim exp, which", { $0["exp"] = 1 }),
        // It cannot control a terminal.
        ("the claim U+001B[2J, which", { $0["\u{1b}[2J"] = 1 }),
    ]

    @Test(arguments: changes.indices) func refusalNamesTheMember(index: Int) async throws {
        let (point, change) = Self.changes[index]
        let message = try await refusal {
            change(&$0)
        } header: { _ in
        }
        #expect(message.contains(point), "\(message)")
    }

    @Test func refusalNamesTheHeader() async throws {
        let message = try await refusal { _ in
        } header: {
            $0["jku"] = "https://keys.example"
        }
        #expect(message == "must have alg, typ and kid in its header, and nothing else")
    }

    private func refusal(
        _ change: (inout JSONObject) -> Void, header: (inout JSONObject) -> Void
    ) async throws -> String {
        let fixture = try await TwoWebsitesFixture(.memory)
        let (rig, first) = (fixture.rig, fixture.first)
        let asked = try await fixture.ask()
        let signed = try first.phone.decision(
            "approve", about: try await rig.shown(asked.challenge, to: first.credential),
            device: first.credential.id.text, origin: RelayRig.origin, number: "47", at: rig.time.now(), change: change,
            header: header)
        do {
            let result = try await rig.post(PhoneAnswer(approves: true, signed: signed), asked.challenge, by: first)
            Issue.record("accepted: \(result)")
        } catch Refusal.invalid(let faults) {
            return try #require(faults.first).message.english
        }
        return ""
    }
}
