import Bytes
import Crypto
import JSON

/// The enrolment that an attestation must be for.
public struct AttestationSubject: Sendable {
    /// The audience of the phone's statements: the relay's origin, `#`, and the website's name.
    public let audience: String
    /// The token by which the website knows its user.
    public let user: String
    public let activationCode: String
    /// The phone's key of this enrolment.
    public let key: P256PublicKey

    public init(audience: String, user: String, activationCode: String, key: P256PublicKey) {
        self.audience = audience
        self.user = user
        self.activationCode = activationCode
        self.key = key
    }
}

/// The challenge of an attestation: a digest that names one enrolment.
///
/// An activation code works once, so an attestation made for it cannot be replayed. Every field has
/// its length before it, so no two enrolments have the same encoding:
///
///     SHA-256( f("twoefay-attestation-v1") f(audience) f(user token) f(activation code) f(JWK) )
///     f(x) = the number of bytes of x in 32 bits, highest byte first, and then x
///
/// Texts are in UTF-8. The JWK is in the canonical form of RFC 7638.
///
/// On Android, the JWK field is empty: an app must give the challenge before the key exists. There
/// the leaf certificate is about the key itself, and `AndroidAttestation` compares the two.
public enum AttestationChallenge {
    private static let label = "twoefay-attestation-v1"

    /// The challenge for App Attest, which names the key.
    public static func apple(_ subject: AttestationSubject) -> [UInt8] {
        digest(subject, jwk: JSONWriter.write(subject.key.jwk))
    }

    /// The challenge for `setAttestationChallenge` on Android.
    public static func android(_ subject: AttestationSubject) -> [UInt8] { digest(subject, jwk: []) }

    /// The `clientData` of App Attest, whose SHA-256 the app passes to `attestKey`. It names the
    /// key again, by its thumbprint, so that whoever reads it alone sees which key it is for.
    public static func clientData(_ subject: AttestationSubject) -> [UInt8] {
        JSONWriter.write(
            JSONObject([
                ("challenge", .string(Base64URL.encode(apple(subject)))), ("jkt", .string(subject.key.thumbprint)),
            ]))
    }

    private static func digest(_ subject: AttestationSubject, jwk: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        for field in [label, subject.audience, subject.user, subject.activationCode].map({ Array($0.utf8) }) + [jwk] {
            withUnsafeBytes(of: UInt32(clamping: field.count).bigEndian) { bytes += $0 }
            bytes += field
        }
        return SHA256.hash(bytes)
    }
}
