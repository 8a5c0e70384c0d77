import Bytes
import JSON

/// The attestation as a phone sends it. `docs/phones/attestation.md` describes the form.
public enum AttestationStatement: Sendable, Equatable {
    /// An attestation object of App Attest, and the identifier of its key.
    case apple(keyID: [UInt8], object: [UInt8])
    /// A certificate chain of Android, the leaf first.
    case android(chain: [[UInt8]])

    public var platform: AttestedDevice.Platform {
        switch self {
        case .apple: .ios
        case .android: .android
        }
    }

    /// Reads `{"format": "apple-appattest", "key_id": …, "object": …}` or `{"format":
    /// "android-key", "chain": […]}`. Bytes are base64url. Sizes are checked before anything is
    /// decoded.
    public init(json: JSONValue) throws(AttestationFault) {
        guard let members = json.object else { throw .malformed }
        switch members["format"]?.string {
        case AppAttestation.format?:
            guard members.count == 3, let keyID = members["key_id"]?.string, let object = members["object"]?.string
            else { throw .malformed }
            self = .apple(
                keyID: try Self.decode(keyID, maxBytes: 32),
                object: try Self.decode(object, maxBytes: AppAttestation.maxBytes))
        case AndroidAttestation.format?:
            guard members.count == 2, let texts = members["chain"]?.array else { throw .malformed }
            guard texts.count <= AndroidAttestation.maxCertificates else { throw .size }
            var chain: [[UInt8]] = []
            for text in texts {
                guard let text = text.string else { throw .malformed }
                chain.append(try Self.decode(text, maxBytes: AndroidAttestation.maxCertificateBytes))
            }
            self = .android(chain: chain)
        case _?: throw .format
        case nil: throw .malformed
        }
    }

    /// The same form again, for storing and for clients that verify the attestation themselves.
    public var json: JSONObject {
        switch self {
        case .apple(let keyID, let object):
            [
                "format": .string(AppAttestation.format), "key_id": .string(Base64URL.encode(keyID)),
                "object": .string(Base64URL.encode(object)),
            ]
        case .android(let chain):
            [
                "format": .string(AndroidAttestation.format),
                "chain": .array(chain.map { .string(Base64URL.encode($0)) }),
            ]
        }
    }

    private static func decode(_ text: String, maxBytes: Int) throws(AttestationFault) -> [UInt8] {
        guard text.utf8.count <= (maxBytes * 4 + 2) / 3 else { throw .size }
        guard let bytes = Base64URL.decode(text) else { throw .malformed }
        return bytes
    }
}
