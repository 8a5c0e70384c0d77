import Bytes
import Crypto
import JSON
import World

/// A further key of a phone, with its tagged certificate. It signs documents, and nothing else.
public struct DocumentKey: Sendable {
    public let tag: String
    /// Whether the key signs bare digests, and no statements.
    public let isRaw: Bool
    public let key: P256PrivateKey
    public let certificate: Certificate

    init(tag: String, isRaw: Bool, key: P256PrivateKey, certificate: Certificate) {
        self.tag = tag
        self.isRaw = isRaw
        self.key = key
        self.certificate = certificate
    }

    /// Reads the stored form. Throws unless the certificate is for the key.
    init(_ object: JSONObject) throws(CryptoFailure) {
        guard let tag = object["tag"]?.string, let isRaw = object["raw"]?.bool else {
            throw CryptoFailure("a key for documents has no tag")
        }
        self.tag = tag
        self.isRaw = isRaw
        key = try P256PrivateKey(pem: Secret(utf8: object["key"]?.string ?? ""))
        certificate = try Certificate(pem: Array((object["certificate"]?.string ?? "").utf8))
        guard certificate.spkiThumbprint == key.publicKey.spkiThumbprint else {
            throw CryptoFailure("the certificate of the tag \(tag) is not for its key")
        }
    }

    func json() throws(CryptoFailure) -> JSONObject {
        [
            "tag": .string(tag), "raw": .bool(isRaw),
            "key": .string(String(decoding: try key.pem().reveal(), as: UTF8.self)),
            "certificate": .string(String(decoding: try certificate.pem(), as: UTF8.self)),
        ]
    }
}

/// A document that the person has agreed to sign, in the form that its tag demands.
public enum DocumentSignature: Sendable, Equatable {
    /// A `twoefay-document+jwt`.
    case statement(String)
    /// An ECDSA signature over the digest, in DER.
    case raw([UInt8])
}

extension Enrolment {
    /// The key with a tag; nil if this phone has none.
    public func documentKey(_ tag: String) -> DocumentKey? { documentKeys.first { $0.tag == tag } }

    /// Returns the enrolment with the key that the next request for a tag names: a new one if there is
    /// none or `newKey` is set. The caller stores it before the request is sent. Otherwise the phone
    /// could lose a key whose certificate the relay has already put in the place of the former one.
    public func preparing(tag: String, newKey: Bool = false) throws(CryptoFailure) -> Enrolment {
        guard newKey || nextDocumentKeys[tag] == nil && documentKey(tag) == nil else { return self }
        var changed = self
        changed.nextDocumentKeys[tag] = try P256PrivateKey.generate()
        return changed
    }

    /// Signs a document. The caller has shown label and digest to the person, who agreed.
    public func sign(
        _ digest: [UInt8], label: String, with key: DocumentKey, device: String, at now: Timestamp
    ) throws(CryptoFailure) -> DocumentSignature {
        guard !key.isRaw else { return .raw(try key.key.sign(digest: digest)) }
        return .statement(
            try SignedStatement.document(digest, label: label, of: self, device: device, tag: key, at: now))
    }
}

extension SignedStatement {
    /// Makes the statement about a document. It is signed by the key of the tag, never by the
    /// enrolment key.
    static func document(
        _ digest: [UInt8], label: String, of enrolment: Enrolment, device: String, tag: DocumentKey,
        at now: Timestamp
    ) throws(CryptoFailure) -> String {
        try sign(
            "twoefay-document+jwt", ("kid", .string(device)),
            [
                "v": 1, "aud": .string(enrolment.audience), "tag": .string(tag.tag), "label": .string(label),
                "digest": .string(Base64URL.encode(digest)), "iat": .integer(now.seconds),
            ], tag.key)
    }

    /// Makes the proof that this phone asks for a certificate with this tag and this request.
    static func certificate(
        _ request: String, tag: String, of enrolment: Enrolment, device: String, at now: Timestamp
    ) throws(CryptoFailure) -> String {
        try sign(
            "twoefay-certificate+jwt", ("kid", .string(device)),
            [
                "v": 1, "aud": .string(enrolment.audience), "tag": .string(tag),
                "csr": .string(Base64URL.encode(SHA256.hash(Array(request.utf8)))), "iat": .integer(now.seconds),
            ], enrolment.key)
    }
}

extension Responder {
    /// Gets the certificate of a tag, or renews it: for the key that `Enrolment.preparing` has made, or
    /// else for the one that the phone has. A certificate for a new key revokes those of the former.
    ///
    /// - Returns: the enrolment with the key and its certificate, for the caller to store.
    ///
    /// - Parameter isRaw: whether the tag is marked raw. Only an authority outside of the relay's
    ///   installation needs to know.
    public func certify(tag: String, isRaw: Bool = false) async throws(CallFailure) -> Enrolment {
        guard let key = enrolment.nextDocumentKeys[tag] ?? enrolment.documentKey(tag)?.key else {
            throw .unable("there is no key for this tag")
        }
        let body: JSONObject
        do throws(CryptoFailure) {
            let name = CertificateName(uri: "twoefay:\(isRaw ? "raw-signer" : "signer"):\(device):\(tag)")
            let request = String(decoding: try SigningRequest(name, key: key).pem(), as: UTF8.self)
            body = [
                "tag": .string(tag), "csr": .string(request),
                "proof": .string(
                    try SignedStatement.certificate(
                        request, tag: tag, of: enrolment, device: device, at: line.clock.now())),
            ]
        } catch {
            throw .unable(error.description)
        }
        let answer = try await send(.init("/device/certificate", body: body))
        let certificate = try answer.certificate(for: key)
        guard try answer.text("tag") == tag, let isRaw = try answer.accepted()["raw"]?.bool else {
            throw answer.odd("with another tag")
        }
        var changed = enrolment
        changed.clockOffset = line.clock.offset
        changed.nextDocumentKeys[tag] = nil
        changed.documentKeys.removeAll { $0.tag == tag }
        changed.documentKeys.append(DocumentKey(tag: tag, isRaw: isRaw, key: key, certificate: certificate))
        return changed
    }

    /// Renews the certificates of all tags, together with the phone's own certificate.
    ///
    /// A tag that the relay refuses keeps its certificate: the website may no longer have the tag.
    func renewedDocumentKeys() async throws(CallFailure) -> [DocumentKey] {
        var keys: [DocumentKey] = []
        for key in enrolment.documentKeys {
            do throws(CallFailure) {
                keys.append(try await certify(tag: key.tag, isRaw: key.isRaw).documentKey(key.tag) ?? key)
            } catch {
                guard case .refused = error else { throw error }
                keys.append(key)
            }
        }
        return keys
    }
}
