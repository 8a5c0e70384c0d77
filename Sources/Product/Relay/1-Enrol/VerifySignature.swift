import Crypto
import Domain
import Log
import World

/// The question of a website about a document that a phone of its user is said to have signed.
public struct SignatureQuestion: Sendable {
    public enum Evidence: Sendable {
        /// A `twoefay-document+jwt`.
        case statement(String)
        /// An ECDSA signature over the digest, in DER.
        case raw([UInt8])
    }

    public let device: DeviceID
    public let tag: String
    /// The SHA-256 of the document.
    public let digest: [UInt8]
    public let evidence: Evidence

    public init(device: DeviceID, tag: String, digest: [UInt8], evidence: Evidence) {
        self.device = device
        self.tag = tag
        self.digest = digest
        self.evidence = evidence
    }
}

/// The answer to the question whether a phone signed a document.
public struct SignatureVerdict: Sendable, Equatable {
    public enum Fault: String, Sendable, CaseIterable {
        case statement, signature, digest
        /// The certificate has expired, or is on the revocation list.
        case certificate
        /// The user is locked, frozen, disabled or expired.
        case user
    }

    /// The reason why the signature does not count; nil if it does.
    public let fault: Fault?
    /// The label that the phone has shown; nil for a raw signature.
    public internal(set) var label: String?
    /// The time of the signature by the phone's clock; nil for a raw signature.
    public internal(set) var signedAt: Timestamp?
    public let username: String
    public let certificate: TaggedCertificate

    var isValid: Bool { fault == nil }
}

extension Relay {
    /// Checks what the key of a tagged certificate has signed.
    ///
    /// Under a tag that is marked raw, only raw signatures count, and under another tag only
    /// statements. A key that signs digests could otherwise be made to sign a statement that its
    /// owner never saw. An enrolment key never counts.
    public func verify(_ question: SignatureQuestion, by website: Website) async throws(Refusal) -> SignatureVerdict {
        let signer = try await withStore("verifySignature") { () async throws(StoreFailure) in
            try await store.signer(question.device, tag: question.tag, of: website.id, at: time.now())
        }
        guard let signer else { throw .notFound }
        let certificate = signer.certificate
        guard let tag = website.policy.certificateTag(question.tag), tag.isRaw == certificate.isRaw else {
            throw Self.changedTag
        }
        guard !signer.isEnrolmentKey, let issued = try? Certificate(pem: Array(certificate.pem.utf8)),
            let key = try? issued.publicKey()
        else {
            log.error("device.key", [.device: question.device.text])
            throw .broken
        }
        let verdict = try judge(question, tag, key, signer, at: website)
        log.info(
            "signature.verified",
            [
                .website: website.name, .device: question.device.text,
                .outcome: verdict.fault?.rawValue ?? "valid",
            ])
        return verdict
    }

    private func judge(
        _ question: SignatureQuestion, _ tag: CertificateTag, _ key: P256PublicKey, _ signer: DocumentSigner,
        at website: Website
    ) throws(Refusal) -> SignatureVerdict {
        func verdict(_ fault: SignatureVerdict.Fault?) -> SignatureVerdict {
            SignatureVerdict(fault: fault, username: signer.username, certificate: signer.certificate)
        }
        if signer.state != .active { return verdict(.user) }
        if signer.isRevoked || time.now() >= signer.certificate.expiresAt { return verdict(.certificate) }
        switch question.evidence {
        case .raw(let signature):
            guard tag.isRaw else { throw Self.needsStatement }
            return verdict(key.verify(derSignature: signature, ofDigest: question.digest) ? nil : .signature)
        case .statement(let statement):
            guard !tag.isRaw else { throw Self.needsRaw }
            do throws(SignedDocument.Fault) {
                let document = try SignedDocument(
                    statement, of: question.device, tag: question.tag, key: key,
                    audience: SignedDecision.audience(origin: settings.origin, website: website.name),
                    digest: question.digest)
                var valid = verdict(nil)
                valid.label = document.label
                valid.signedAt = document.signedAt
                return valid
            } catch {
                switch error {
                case .statement: return verdict(.statement)
                case .signature: return verdict(.signature)
                case .digest: return verdict(.digest)
                }
            }
        }
    }

    private static let changedTag = Refusal.conflict([
        FieldFault(
            "tag", .state,
            LocalizedText(
                "is no longer in the policy certificate-tags as it was when the certificate was issued",
                de: "steht nicht mehr so in der Richtlinie certificate-tags wie bei der Ausstellung des Zertifikats"))
    ])

    private static let needsStatement = Refusal.forbidden(
        LocalizedText(
            "A signature over a bare hash counts only under a tag that the policy certificate-tags marks raw",
            de:
                "Eine Signatur über einen bloßen Hash zählt nur bei einem Tag, das certificate-tags als raw kennzeichnet"
        ))

    private static let needsRaw = Refusal.forbidden(
        LocalizedText(
            "Under a tag that is marked raw, only signatures over a hash count: its key may have signed any hash",
            de:
                "Bei einem mit raw gekennzeichneten Tag zählen nur Signaturen über einen Hash: Sein Schlüssel kann jeden "
                + "Hash signiert haben"))
}
