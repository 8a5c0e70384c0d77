import Bytes
import Crypto
import JSON
import Synchronization
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
    /// - Parameters:
    ///   - isRaw: whether the tag is marked raw. Only an authority outside of the relay's installation
    ///     needs to know.
    ///   - store: stores the enrolment before the request is sent.
    /// - Returns: the enrolment with the key and its certificate, for the caller to store.
    public func certify(
        tag: String, isRaw: Bool = false, storing store: (Enrolment) throws(CallFailure) -> Void = { _ in }
    ) async throws(CallFailure) -> Enrolment {
        let (_, prepared) = try prepare([(tag, isRaw)])
        try store(prepared)
        let key = try await certified(tag, isRaw: isRaw)
        var changed = enrolment
        changed.clockOffset = line.clock.offset
        changed.nextDocumentKeys[tag] = nil
        changed.documentKeys.removeAll { $0.tag == tag }
        changed.documentKeys.append(key)
        changed.openRequests = requests.withLock { $0 }
        return changed
    }

    /// Prepares the requests for some tags. Returns them by tag, and the enrolment that must be stored
    /// before they are sent.
    func prepare(
        _ tags: [(tag: String, isRaw: Bool)], own: Bool = false
    ) throws(CallFailure) -> (own: String?, enrolment: Enrolment) {
        let (now, given) = (line.clock.now(), enrolment)
        var open = requests.withLock { $0 }
        var text: String?
        do throws(CryptoFailure) {
            if own { text = try open.request(of: given) }
            for (tag, isRaw) in tags {
                guard let key = key(of: tag) else { throw CryptoFailure("there is no key for this tag") }
                _ = try open.request(tag, isRaw: isRaw, key: key, of: given, device: device, at: now)
            }
        } catch {
            throw .unable(error.description)
        }
        requests.withLock { $0 = open }
        var prepared = enrolment
        prepared.openRequests = open
        return (text, prepared)
    }

    private func key(of tag: String) -> P256PrivateKey? {
        enrolment.nextDocumentKeys[tag] ?? enrolment.documentKey(tag)?.key
    }

    /// Sends the open request for a tag.
    private func certified(_ tag: String, isRaw: Bool) async throws(CallFailure) -> DocumentKey {
        guard let key = key(of: tag), let open = requests.withLock({ $0.tagged[tag] }) else {
            throw .unable("there is no key for this tag")
        }
        do throws(CallFailure) {
            let answer = try await send(
                .init(
                    "/device/certificate",
                    body: ["tag": .string(tag), "csr": .string(open.request), "proof": .string(open.proof)]))
            let certificate = try answer.certificate(for: key)
            guard try answer.text("tag") == tag, let isRaw = try answer.accepted()["raw"]?.bool else {
                throw answer.odd("with another tag")
            }
            requests.withLock { $0.tagged[tag] = nil }
            return DocumentKey(tag: tag, isRaw: isRaw, key: key, certificate: certificate)
        } catch {
            requests.withLock { $0.end(tag, after: error) }
            throw error
        }
    }

    /// Renews the certificates of all tags, together with the phone's own certificate.
    ///
    /// A tag without a new certificate keeps its former one, and its request stays open: the relay may
    /// be away, and the website may no longer have the tag. The change of the phone is not lost then.
    func renewedDocumentKeys() async throws(CallFailure) -> [DocumentKey] {
        var keys = enrolment.documentKeys
        for (index, key) in keys.enumerated() {
            do throws(CallFailure) {
                keys[index] = try await certified(key.tag, isRaw: key.isRaw)
            } catch {
                switch error {
                case .unbound: throw error
                case .refused: continue
                case .notSent, .ambiguous, .unable: return keys
                }
            }
        }
        return keys
    }
}
