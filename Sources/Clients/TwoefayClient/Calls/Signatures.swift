import Bytes
import JSON
import World

/// A further certificate of a phone. Its key signs documents.
public struct TaggedCertificate: Sendable, Equatable {
    /// The tag of the policy `certificate-tags`.
    public let tag: String
    /// Whether the key signs bare hashes, and no statements.
    public let isRaw: Bool
    /// The serial number in hexadecimal.
    public let serial: String
    /// The certificate in PEM.
    public let pem: String
    /// The time from which the certificate is no longer valid.
    public let expiresAt: Timestamp

    init(_ json: JSONObject) throws(CallFault) {
        tag = try json.text("tag")
        isRaw = try json.flag("raw")
        serial = try json.text("serial")
        pem = try json.text("certificate")
        expiresAt = try json.timestamp("expires_at")
    }
}

/// The signature that a phone made when its owner signed a document.
public enum DocumentSignature: Sendable, Equatable {
    /// A `twoefay-document+jwt`.
    case statement(String)
    /// An ECDSA signature over the hash, in DER. The tag must be marked raw.
    case raw([UInt8])
}

/// The relay's answer about a signed document.
public struct SignatureVerdict: Sendable, Equatable {
    /// Whether the phone of this user has signed this document.
    public let isValid: Bool
    /// The reason if it has not: `statement`, `signature`, `digest`, `certificate` or `user`.
    public let fault: String?
    /// The label that the phone showed; nil for a bare hash, about which the phone showed nothing.
    public let label: String?
    /// The time of the signature by the phone's clock; nil for a bare hash.
    public let signedAt: Timestamp?
    /// The user of the phone.
    public let username: String
    /// The certificate of the key.
    public let certificate: TaggedCertificate

    init(_ json: JSONObject) throws(CallFault) {
        isValid = try json.flag("valid")
        fault = json["fault"]?.string
        label = json["label"]?.string
        signedAt = try json.timestamp(ifAny: "signed_at")
        username = try json.text("username")
        certificate = try TaggedCertificate(json["certificate"]?.object ?? [:])
    }
}

extension RelayClient {
    /// Checks what a phone has signed with the key of a tagged certificate.
    ///
    /// Compare `label` and `username` of the verdict with what you asked the user to sign.
    ///
    /// - Parameters:
    ///   - hash: the SHA-256 of the document, which you have computed yourself.
    ///   - device: the phone that is said to have signed.
    ///   - tag: the tag of its certificate.
    public func verifySignature(
        of hash: [UInt8], by device: String, tag: String, _ signature: DocumentSignature
    ) async throws(CallFault) -> SignatureVerdict {
        var body: JSONObject = [
            "device": .string(device), "tag": .string(tag), "hash": .string(Base64URL.encode(hash)),
        ]
        switch signature {
        case .statement(let statement): body["statement"] = .string(statement)
        case .raw(let der): body["signature"] = .string(Base64.encode(der))
        }
        return try SignatureVerdict(try await call("POST", "/verify-signature", body))
    }
}
