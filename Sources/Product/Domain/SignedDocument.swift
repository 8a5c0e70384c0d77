import Bytes
import Crypto
import JSON
import World

/// A statement by which the holder of a phone has signed a document: a `twoefay-document+jwt`,
/// signed by the key of a tagged certificate.
///
/// Invariant: the type and the audience are a part of what is signed. So no document is a decision,
/// and no statement for one website counts at another one.
public struct SignedDocument: Equatable, Sendable {
    public static let type = "twoefay-document+jwt"
    public static let labelLimit = 128
    public static let maxBytes = 8192

    /// The person's name for the document, as the phone has shown it.
    public let label: String
    /// The SHA-256 of the document.
    public let digest: [UInt8]
    /// The time of the signature by the phone's clock.
    public let signedAt: Timestamp

    /// The reason why a statement is not accepted.
    public enum Fault: String, Error, CaseIterable {
        /// It is no statement of this kind, or for another website, phone or tag.
        case statement
        /// The key of the certificate has not signed it.
        case signature
        /// It is about another document.
        case digest
    }

    /// Reads a statement about the document with this digest.
    public init(
        _ compact: String, of device: DeviceID, tag: String, key: P256PublicKey, audience: String, digest: [UInt8]
    ) throws(Fault) {
        guard let object = try? JWS.parse(compact, maxBytes: Self.maxBytes), object.type == Self.type,
            object.keyID == device.text,
            let claims = (try? JSONReader.read(object.payload))?.object, claims["v"]?.integer == 1,
            claims["aud"]?.string == audience, claims["tag"]?.string == tag,
            let label = claims["label"]?.string, FieldRule.line(label, limit: Self.labelLimit) == nil,
            let named = claims["digest"]?.string.flatMap({ Base64URL.decode($0) }), named.count == 32,
            // A year after 9999 has five digits as text, and would be sorted before today's.
            let iat = claims["iat"]?.integer, Timestamp.choosableSeconds.contains(iat)
        else { throw .statement }
        guard object.verify(key) else { throw .signature }
        guard named == digest else { throw .digest }
        self.label = label
        self.digest = named
        signedAt = Timestamp(seconds: iat)
    }
}

/// A phone's request for a tagged certificate, which its enrolment key has signed: a
/// `twoefay-certificate+jwt`.
public enum CertificateProof {
    public static let type = "twoefay-certificate+jwt"
    /// The greatest difference between `iat` and the relay's clock.
    public static let clockTolerance = DeviceReport.clockTolerance

    public enum Fault: Error, Equatable {
        /// The phone has signed no request for this tag and this certificate request.
        case statement
        /// Its time differs too much from the relay's clock.
        case clock
    }

    /// Checks a proof. Returns its time by the phone's clock.
    ///
    /// - Parameter request: the certificate request, in the text that the phone sent.
    public static func check(
        _ compact: String, of device: DeviceID, key: P256PublicKey, audience: String, tag: String, request: String,
        at now: Timestamp
    ) throws(Fault) -> Timestamp {
        guard let object = try? JWS.parse(compact, maxBytes: 8192), object.type == type,
            object.keyID == device.text, object.verify(key),
            let claims = (try? JSONReader.read(object.payload))?.object, claims["v"]?.integer == 1,
            claims["aud"]?.string == audience, claims["tag"]?.string == tag,
            claims["csr"]?.string == Base64URL.encode(SHA256.hash(Array(request.utf8))),
            let iat = claims["iat"]?.integer
        else { throw .statement }
        let tolerance = clockTolerance.components.seconds
        guard (now.seconds - tolerance...now.seconds + tolerance).contains(iat) else { throw .clock }
        return Timestamp(seconds: iat)
    }
}
