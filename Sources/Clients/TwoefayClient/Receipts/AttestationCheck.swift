import Attestation
import Bytes
import Crypto
import JSON
import World

/// The attestation of a phone, as the relay reports it: in `Device.attestation` and
/// `LoginOutcome.attestation`. The verdict is the relay's word; `AttestationCheck` verifies the
/// evidence without trust in the relay.
public struct PhoneAttestation: Sendable, Equatable {
    /// The relay's verdict.
    public enum Verdict: String, Sendable {
        /// The attestation is genuine and has no fault.
        case valid
        /// The attestation is genuine, but has a fault, such as an unlocked boot loader.
        case flawed
        /// The attestation proves nothing.
        case invalid
        /// The phone sent none.
        case missing
    }

    /// The attestation as the phone sent it, with the values that it was made for.
    public struct Evidence: Sendable, Equatable {
        /// The statement of the platform.
        public let statement: JSONObject
        /// The activation code that the phone used up.
        public let activationCode: String
        /// The time at which the relay judged the attestation.
        public let judgedAt: Timestamp
    }

    /// The relay's verdict; nil for a result whose policy asks only for the phone's own report.
    public let verdict: Verdict?
    /// The faults, as docs/phones/attestation.md names them.
    public let faults: [String]
    /// The attested facts.
    public let facts: JSONObject?
    /// The evidence; nil if the attestation is not genuine, and in webhooks.
    public let evidence: Evidence?
    /// Whether an assertion of App Attest proves that the app sent the answer; nil if the phone
    /// makes none.
    public let isAsserted: Bool?
    /// The assertion over the receipt.
    public let assertion: [UInt8]?
    /// The state of the phone that it reported itself with the answer.
    public let reported: JSONObject?

    init?(_ json: JSONValue?) throws(CallFault) {
        guard let json = json?.object else { return nil }
        verdict = json["verdict"]?.string.flatMap { Verdict(rawValue: $0) }
        faults = json["faults"] == nil ? [] : try json.texts("faults")
        facts = json["facts"]?.object
        isAsserted = json["asserted"]?.bool
        assertion = json["assertion"]?.string.flatMap { Base64URL.decode($0) }
        reported = json["reported"]?.object
        guard let evidence = json["evidence"]?.object, let statement = evidence["statement"]?.object else {
            self.evidence = nil
            return
        }
        self.evidence = Evidence(
            statement: statement, activationCode: try evidence.text("activation_code"),
            judgedAt: try evidence.timestamp("judged_at"))
    }
}

/// The reason why a phone's attestation or its assertion was not accepted.
public enum AttestationCheckFault: Error, Sendable, Equatable, CustomStringConvertible {
    /// The relay has no evidence: the phone sent no genuine attestation.
    case noEvidence
    /// The phone used another activation code than the website expects.
    case activationCode
    /// The attestation proves nothing, or is for something else.
    case invalid(AttestationFault)
    /// The attestation is genuine, but has faults.
    case flawed([AttestationFault])
    /// The phone makes no assertions, or the relay has none for this receipt.
    case noAssertion

    public var description: String {
        switch self {
        case .noEvidence: "the relay has no genuine attestation of this phone"
        case .activationCode: "the attestation was made for another activation code"
        case .invalid(let fault): fault.message
        case .flawed(let faults): faults.map(\.message).joined(separator: "; ")
        case .noAssertion: "there is no assertion over this receipt"
        }
    }
}

/// Verifies the attestation of a phone, so that a website need not trust the relay for it.
///
/// The website pins the phone first (`BindingCheck`), so that the relay cannot name another key. It
/// then knows that the pinned key is in the secure hardware, or was made by the genuine app. Tested
/// in `AttestationCheckTests.swift`.
///
///     let check = AttestationCheck(origin: origin, website: "shop", by: verifier)
///     let attested = try check.verified(device.attestation, of: phone, token: token, code: code, at: boundAt)
///     try check.verify(outcome.attestation, over: evidence.receipt, by: attested)
public struct AttestationCheck: Sendable {
    private let audience: String
    private let verifier: AttestationVerifier

    /// Creates a check for the phones of one website at one relay.
    ///
    /// - Parameters:
    ///   - origin: the origin of the relay, as in its settings: `https://host:port`.
    ///   - website: the name of this website, as in its certificate.
    ///   - verifier: the roots, the accepted apps and the revocation list. For the roots of Apple and
    ///     Google, use `AttestationRoots.pinned()`.
    public init(origin: String, website: String, by verifier: AttestationVerifier) {
        audience = "\(origin)#\(website)"
        self.verifier = verifier
    }

    /// Verifies the attestation of a pinned phone, and returns the attested facts.
    ///
    /// - Parameters:
    ///   - attestation: that of the phone, from `RelayClient.user`.
    ///   - phone: the pinned phone.
    ///   - token: the user's token, as `/register` returned it.
    ///   - code: the activation code that the website gave to the user; nil if the relay mailed it,
    ///     so that the website does not know it.
    ///   - boundAt: the time at which the website learned of the phone. Apple's certificates are
    ///     valid for a few days only.
    public func verified(
        _ attestation: PhoneAttestation?, of phone: PinnedPhone, token: String, code: String?, at boundAt: Timestamp
    ) throws(AttestationCheckFault) -> AttestedDevice {
        guard let evidence = attestation?.evidence else { throw .noEvidence }
        if let code { guard evidence.activationCode.isExactly(code) else { throw .activationCode } }
        let subject = AttestationSubject(
            audience: audience, user: token, activationCode: evidence.activationCode, key: phone.key)
        let device: AttestedDevice
        do throws(AttestationFault) {
            let statement = try AttestationStatement(json: .object(evidence.statement))
            device = try verifier.verify(statement, for: subject, at: boundAt)
        } catch {
            throw .invalid(error)
        }
        let weaknesses = verifier.weaknesses(of: device, at: boundAt)
        guard weaknesses.isEmpty else { throw .flawed(weaknesses) }
        return device
    }

    /// Verifies that the attested app signed a receipt: by an assertion over it.
    ///
    /// The counter is not compared, because the receipt can be used only once anyway
    /// (`ReceiptCheck`).
    ///
    /// - Parameters:
    ///   - attestation: that of the result, from `RelayClient.result`.
    ///   - receipt: the receipt, which `ReceiptCheck` has accepted.
    ///   - device: the phone, as `verified` returned it.
    public func verify(
        _ attestation: PhoneAttestation?, over receipt: String, by device: AttestedDevice
    ) throws(AttestationCheckFault) {
        guard let key = device.appAttest?.key, let assertion = attestation?.assertion else { throw .noAssertion }
        do throws(AttestationFault) {
            _ = try AppAssertion.verify(
                assertion, key: key, clientDataHash: SHA256.hash(Array(receipt.utf8)), app: device.app, after: 0)
        } catch {
            throw .invalid(error)
        }
    }
}
