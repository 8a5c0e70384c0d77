import Attestation
import Crypto
import TwoefayClient
import World

/// The check of a phone's attestation by a website; docs/websites/receipts.md shows it.
struct AttestedPhone {
    let check: AttestationCheck
    /// The phone, pinned before (`BindingCheck`).
    let phone: PinnedPhone

    /// - Parameters:
    ///   - signer: the SHA-256 of the certificate that signs your app for Android.
    ///   - revoked: Google's revocation list; without one, no phone with Android is accepted.
    init(
        origin: String, website: String, phone: PinnedPhone, roots: AttestationRoots, signer: [UInt8],
        revoked: RevocationList?
    ) {
        check = AttestationCheck(
            origin: origin, website: website,
            by: AttestationVerifier(
                roots: roots, appleApps: ["TEAM123456.com.example.app"],
                androidApps: [AndroidApp(package: "com.example.app", signatureDigests: [signer])],
                revocationList: revoked))
        self.phone = phone
    }

    /// Call this once, when the phone is pinned, and store the facts beside the key.
    func facts(_ device: Device, token: String, code: String, now: Timestamp) throws -> AttestedDevice {
        try check.verified(device.attestation, of: phone, token: token, code: code, at: now)
    }

    /// Call this after `ReceiptCheck`: did the attested app sign this receipt? On Android the key of
    /// the receipt is attested itself, so nothing is left to check.
    func requireApp(_ outcome: LoginOutcome, _ evidence: LoginEvidence, of facts: AttestedDevice) throws {
        guard facts.platform == .ios else { return }
        try check.verify(outcome.attestation, over: evidence.receipt, by: facts)
    }
}
