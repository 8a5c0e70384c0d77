import Domain
import JSON
import Relay
import World

/// The attestation of a phone, as operators see it: without the certificates.
public struct PhoneAttestation: Sendable, Equatable {
    public let verdict: AttestationVerdict
    /// The faults, as `AttestationFault` names them.
    public let faults: [String]
    /// The attested facts; nil if the attestation is not genuine.
    public let facts: JSONObject?
    public let judgedAt: Timestamp

    public var json: JSONObject {
        [
            "verdict": .word(verdict), "faults": .array(faults.map { .string($0) }),
            "facts": facts.map { .object($0) } ?? .null, "judged_at": .string(judgedAt.rfc3339),
        ]
    }

    /// The columns of the phone `d`, which `join` adds.
    static let columns = """
        a.verdict AS attestation_verdict, a.faults AS attestation_faults, a.facts AS attestation_facts,
        a.judged_at AS attestation_judged_at
        """

    static let join = "LEFT JOIN attestation a ON a.device_id = d.id"

    static func read(_ row: Row) throws(StoreFailure) -> PhoneAttestation? {
        guard let verdict: AttestationVerdict = try row.optionalWord("attestation_verdict") else { return nil }
        let facts = try row.optionalText("attestation_facts")
        return PhoneAttestation(
            verdict: verdict,
            faults: try row.text("attestation_faults").split(separator: ",").map { String($0) },
            facts: facts.flatMap { (try? JSONReader.read(Array($0.utf8)))?.object },
            judgedAt: try row.timestamp("attestation_judged_at"))
    }
}
