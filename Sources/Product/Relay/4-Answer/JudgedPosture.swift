import Attestation
import Bytes
import Crypto
import Domain
import JSON
import Log
import World

/// The judgement of a phone's attestation and posture at an approval, which is stored with the end
/// of the challenge.
public struct JudgedPosture: Sendable, Equatable {
    /// The attestation that the judgement relies on. The end is written only if it is still the
    /// stored one.
    public struct Relied: Sendable, Equatable {
        /// The operation that bound the phone with this attestation.
        public let binding: OperationID
        public let counter: UInt32
        /// The counter of the accepted assertion; nil without one.
        public let next: UInt32?

        public init(binding: OperationID, counter: UInt32, next: UInt32?) {
            self.binding = binding
            self.counter = counter
            self.next = next
        }
    }

    public let answer: AttestedAnswer
    /// The stored attestation; nil if there is none, or if attestations do not count.
    public let relied: Relied?

    public init(answer: AttestedAnswer, relied: Relied?) {
        self.answer = answer
        self.relied = relied
    }
}

/// The facts about the phone at its approval, as the website gets them with the result.
public struct AttestedAnswer: Sendable, Equatable {
    /// The verdict, the attested facts and the phone's own report, as JSON.
    public let facts: String
    /// The accepted assertion over the receipt, in base64url; nil if there is none.
    public let assertion: String?

    public init(facts: String, assertion: String?) {
        self.facts = facts
        self.assertion = assertion
    }

    func json(_ evidence: AttestationRow?) -> JSONObject {
        var object = (try? JSONReader.read(Array(facts.utf8)))?.object ?? [:]
        if let assertion { object.set("assertion", .string(assertion)) }
        if let evidence = evidence?.evidence { object.set("evidence", .object(evidence)) }
        return object
    }
}

/// The attestation and posture of a phone that approves.
///
/// - `judgePosture` reads the stored attestation, verifies the assertion, and compares the facts with
///   the policy of the challenge. A phone that fails a demand is refused, and nothing changes: its
///   person may meet the demand and approve again, or use another factor.
/// - The end of the challenge repeats what was read: the phone has the same attestation, and its
///   counter is the same. The counter of the assertion is stored in the same script, so that no
///   assertion counts twice.
///
/// Tests: `RelayTests/AttestedAnswerTests.swift`, `PhonePostureTests.swift`.
extension Relay {
    func judgePosture(
        _ row: ChallengeRow, _ policy: Policy, reported: ReportedPosture?, receipt: String?, assertion: String?,
        by phone: PhoneCredential
    ) async throws(Refusal) -> JudgedPosture? {
        guard policy.asksPosture else { return nil }
        let counts = policy.attestation.strictest != .none
        let stored = counts ? try await attestation(of: phone.id) : nil
        let demands = demands(of: policy, on: phone, stored)
        var next: UInt32?
        if demands.canAssert, let stored, let receipt, let assertion {
            do throws(AttestationFault) {
                next = try Self.verify(assertion, over: receipt, by: stored, demands)
            } catch {
                log.notice(
                    "assertion.refused",
                    [
                        .reason: error.rawValue, .website: phone.website.name, .user: phone.user.text,
                        .device: phone.id.text, .challenge: row.id.text,
                    ])
            }
        }
        let complete = policy.posture.isEmpty ? reported : try await completed(reported, by: phone)
        let unmet = demands.unmet(reported: complete, asserted: next == nil ? nil : reported ?? ReportedPosture())
        guard unmet.isEmpty else {
            let faults = stored?.faults.joined(separator: ",")
            log.notice(
                "posture.refused",
                [
                    .reason: unmet.map(\.rawValue).joined(separator: ","), .outcome: stored?.verdict.rawValue,
                    .error: faults?.isEmpty == true ? nil : faults, .website: phone.website.name,
                    .user: phone.user.text, .device: phone.id.text, .challenge: row.id.text,
                ])
            throw await refused(.posture, row.id, by: phone, as: .postureUnmet(unmet))
        }
        var facts = JSONObject()
        if let stored, demands.attestation != .none {
            facts.set("verdict", .word(stored.verdict))
            facts.set("faults", .array(stored.faults.map { .string($0) }))
            if let attested = demands.attested { facts.set("facts", .object(attested.json)) }
            if demands.canAssert { facts.set("asserted", .bool(next != nil)) }
        } else if demands.attestation != .none {
            facts.set("verdict", .word(AttestationVerdict.missing))
            facts.set("faults", .array([.string(AttestationFault.missing.rawValue)]))
        }
        if let complete { facts.set("reported", .object(complete.json)) }
        return JudgedPosture(
            answer: AttestedAnswer(
                facts: JSONWriter.text(.object(facts)), assertion: next == nil ? nil : assertion),
            relied: stored.flatMap { stored in
                stored.binding.map { JudgedPosture.Relied(binding: $0, counter: stored.counter, next: next) }
            })
    }

    /// Returns the demands on a phone with this attestation.
    private func demands(of policy: Policy, on phone: PhoneCredential, _ stored: AttestationRow?) -> PhoneDemands {
        PhoneDemands(
            of: policy, attested: stored?.attested, isValid: stored?.verdict == .valid, platform: phone.platform)
    }

    /// Returns the counter of a valid assertion over the signed decision.
    private static func verify(
        _ assertion: String, over receipt: String, by stored: AttestationRow, _ demands: PhoneDemands
    ) throws(AttestationFault) -> UInt32 {
        guard let attested = demands.attested, let key = attested.appAttest?.key else { throw .key }
        guard let bytes = Base64URL.decode(assertion) else { throw .malformed }
        return try AppAssertion.verify(
            bytes, key: key, clientDataHash: SHA256.hash(Array(receipt.utf8)), app: attested.app,
            after: stored.counter)
    }

    /// Adds the demands to the pending challenges of a phone. The stored attestation is read only
    /// if a policy has demands, and the PIN only if one uses PINs: a request that was held read the
    /// phone long before.
    func setDemands(on phone: PhoneCredential, _ pending: inout [Pending]) async throws(Refusal) {
        var pin: PhonePIN?
        for index in pending.indices {
            // The answer to a challenge with an unreadable policy is refused anyway.
            guard let policy = try? policies.policy(changedBy: pending[index].policy), policy.answers != .website
            else { continue }
            if policy.asksPosture {
                let counts = policy.attestation.strictest != .none
                let stored = counts ? try await attestationToShow(of: phone.id) : nil
                pending[index].demands = demands(of: policy, on: phone, stored).json
            }
            var further = JSONObject()
            further.set("max_uv_age", policy.maxUVAge.map { .integer(Int64($0)) })
            if policy.pin != .none {
                let present = if let pin { pin } else { try await self.pin(of: phone) }
                pin = present
                further.set("pin", policy.pinDemand(on: present).map { .string($0) })
            }
            guard further.count > 0 else { continue }
            var demands = pending[index].demands ?? JSONObject()
            for member in further.members { demands.set(member.name, member.value) }
            pending[index].demands = demands
        }
    }

    /// Adds the phone's attestation to a result, so that the website can verify it.
    func withEvidence(_ reported: ChallengeResult) async throws(Refusal) -> ChallengeResult {
        guard reported.attested != nil, let device = reported.device else { return reported }
        var reported = reported
        reported.evidence = try await attestationToShow(of: device)
        return reported
    }
}

/// The reports of phones before their answers.
extension Relay {
    /// Returns the report of an answer, completed by the phone's last report.
    private func completed(
        _ answer: ReportedPosture?, by phone: PhoneCredential
    ) async throws(Refusal) -> ReportedPosture? {
        let before = try await withStore("posture") { () async throws(StoreFailure) in
            try await store.report(of: phone.id)
        }
        return ReportedPosture.latest(answer, before: before, at: time.now())
    }
}
