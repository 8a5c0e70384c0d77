/// The reason why an attestation does not prove what it should. Log, metrics and audit use the raw
/// values.
public enum AttestationFault: String, Error, Sendable, CaseIterable {
    /// The phone sent no attestation.
    case missing
    /// The attestation is larger than any valid one.
    case size
    /// The attestation is not in the form of its platform.
    case malformed
    /// The attestation is in a form that is not supported.
    case format
    /// A signature, name or constraint of the certificates is wrong.
    case chain
    /// The certificates do not lead to a trusted root.
    case root
    /// A certificate is expired or not yet valid.
    case validity
    /// A certificate is on the revocation list.
    case revoked
    case revocationListMissing = "revocation_list_missing"
    /// The revocation list is older than allowed, or its time is in the future.
    case revocationListStale = "revocation_list_stale"
    /// The certificate has no readable statement of the platform, or has two.
    case statement
    /// A certificate above the leaf makes a statement about a key, too. Someone used an attested
    /// key to sign another certificate.
    case extendedChain = "extended_chain"
    /// The attestation was made for another challenge.
    case challenge
    /// The attestation is for another key.
    case key
    /// The attestation is from another app.
    case app
    /// The counter of an attestation is not zero, or that of an assertion did not grow.
    case counter
    /// The authenticator data names neither environment of App Attest.
    case environment
    /// The app was signed for development.
    case development
    /// The signature of an assertion is wrong.
    case signature
    /// The key or its attestation is in software.
    case securityLevel = "security_level"
    /// The key was not generated in the secure hardware.
    case origin
    /// The key can be used for other purposes than signatures, or by every app.
    case purpose
    /// The operating system that started is not the manufacturer's, or its state is not attested.
    case bootState = "boot_state"
    /// The boot loader is unlocked.
    case unlocked

    /// The message for developers and operators.
    public var message: String {
        switch self {
        case .missing: "the phone sent no attestation"
        case .size: "the attestation is larger than any valid one"
        case .malformed: "the attestation is not in the form of its platform"
        case .format: "the attestation's format must be apple-appattest or android-key"
        case .chain: "a signature, name or constraint in the certificate chain is wrong"
        case .root: "the certificate chain does not lead to a trusted root"
        case .validity: "a certificate of the chain is expired or not yet valid"
        case .revoked: "a certificate of the chain is on the revocation list"
        case .revocationListMissing: "there is no revocation list, so no chain of Android can be trusted"
        case .revocationListStale: "the revocation list is too old, or dated in the future: fetch it again"
        case .statement: "the leaf certificate must have exactly one readable statement of the platform"
        case .extendedChain: "a certificate above the leaf has a key description: the chain was extended"
        case .challenge: "the attestation was made for another challenge"
        case .key: "the attestation is for another key"
        case .app: "the attestation is from another app"
        case .counter: "the counter must be zero in an attestation, and grow with every assertion"
        case .environment: "the authenticator data names no environment of App Attest"
        case .development: "the app was signed for development"
        case .signature: "the signature of the assertion is wrong"
        case .securityLevel: "the key or its attestation is in software, not in secure hardware"
        case .origin: "the key was not generated in the secure hardware"
        case .purpose: "the key must be for signatures with P-256 only, and not for every app"
        case .bootState: "the operating system that started is not the manufacturer's"
        case .unlocked: "the boot loader is unlocked"
        }
    }
}
