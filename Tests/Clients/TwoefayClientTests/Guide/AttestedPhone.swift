import Attestation
import Crypto
import TwoefayClient
import World

/// The check of a phone's attestation by a website; docs/websites/receipts.md shows it.
struct AttestedPhone {
    let check: AttestationCheck
    /// The phone, pinned before (`BindingCheck`).
    let phone: PinnedPhone

    init(origin: String, website: String, phone: PinnedPhone, roots: AttestationRoots) {
        check = AttestationCheck(
            origin: origin, website: website,
            by: AttestationVerifier(roots: roots, appleApps: ["TEAM123456.com.example.app"]))
        self.phone = phone
    }

    /// Call this once, when the phone is pinned, and store the facts beside the key.
    func facts(_ device: Device, token: String, code: String, now: Timestamp) throws -> AttestedDevice {
        try check.verified(device.attestation, of: phone, token: token, code: code, at: now)
    }

    /// Call this after `ReceiptCheck`: did the attested app sign this receipt?
    func requireApp(_ outcome: LoginOutcome, _ evidence: LoginEvidence, of facts: AttestedDevice) throws {
        try check.verify(outcome.attestation, over: evidence.receipt, by: facts)
    }
}
