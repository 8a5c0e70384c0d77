/// A further key of the phone, with its certificate. It signs the documents of one tag, and nothing
/// else.
public struct DocumentKey: Sendable, Equatable {
    /// The purpose, as the website's policy `certificate-tags` names it.
    public let tag: String
    /// The stored form of the key.
    let key: [UInt8]
    /// Whether the key signs bare digests, and no statements. Such a signature does not contain what
    /// the person saw: say so on the screen.
    public fileprivate(set) var isRaw = false
    /// The certificate in DER; nil while it is requested.
    public fileprivate(set) var certificate: [UInt8]?
    public fileprivate(set) var expiresAt: Timestamp?
    /// The request in PEM, and its proof, until the answer is there. They are sent again as they are.
    fileprivate var request: String?
    fileprivate var proof: String?
    fileprivate var provedAt: Timestamp?

    fileprivate init(tag: String, key: [UInt8]) {
        self.tag = tag
        self.key = key
    }

    init?(_ object: JSONObject) {
        func bytes(_ name: String) -> [UInt8]? { object[name]?.string.flatMap { Base64URL.decode($0) } }
        guard let tag = object["tag"]?.string, let key = bytes("key") else { return nil }
        self.tag = tag
        self.key = key
        isRaw = object["raw"]?.bool == true
        certificate = bytes("certificate")
        expiresAt = object["expires_at"]?.integer.map { Timestamp(milliseconds: $0) }
        request = object["csr"]?.string
        proof = object["proof"]?.string
        provedAt = object["proved_at"]?.integer.map { Timestamp(milliseconds: $0) }
    }

    var json: JSONObject {
        var object: JSONObject = ["tag": .string(tag), "key": .string(Base64URL.encode(key)), "raw": .bool(isRaw)]
        object["certificate"] = certificate.map { .string(Base64URL.encode($0)) }
        object["expires_at"] = expiresAt.map { .integer($0.milliseconds) }
        object["csr"] = request.map { .string($0) }
        object["proof"] = proof.map { .string($0) }
        object["proved_at"] = provedAt.map { .integer($0.milliseconds) }
        return object
    }
}

/// A signature of a document.
public enum DocumentSignature: Sendable, Equatable {
    /// A `twoefay-document+jwt`.
    case statement(String)
    /// A bare signature in DER.
    case raw([UInt8])
}

extension Phone {
    /// Gets the certificate of a tag, or renews it: 90 days are the most, and fewer than 30 days left
    /// the time to renew. The key is stored before it is sent.
    ///
    /// After 503 or without an answer, call it again: it sends the same request. A certificate for
    /// another key revokes those of the former one.
    ///
    /// - Parameters:
    ///   - isRaw: whether the website has marked the tag raw. Only an authority outside of the relay
    ///     needs to know.
    ///   - hasNewKey: whether to replace the key. After 409, a new key is needed.
    public func certify(_ tag: String, isRaw: Bool = false, hasNewKey: Bool = false) async throws(PhoneError) {
        let key = try prepareDocumentKey(tag, isRaw: isRaw, hasNewKey: hasNewKey)
        guard let open = enrolment.documentKeys[tag], let request = open.request, let proof = open.proof else {
            throw .unable("there is no request for this tag")
        }
        let body: JSONObject = ["tag": .string(tag), "csr": .string(request), "proof": .string(proof)]
        let answer = try await send(RelayRequest("POST", "/device/certificate", body))
        if (400..<500).contains(answer.status), answer.status != 429 {
            // The same would be refused again.
            try change { $0.documentKeys[tag]?.proof = nil }
        }
        guard let der = PEM.decode(try answer.text("certificate"), "CERTIFICATE"),
            Certificate(der: der)?.keyInfo == key.publicKey.info, try answer.text("tag") == tag,
            let isRaw = try answer.accepted()["raw"]?.bool,
            let end = Timestamp(rfc3339: try answer.text("expires_at"))
        else { throw .odd("the certificate is not for this key and tag") }
        try change { enrolment in
            var changed = open
            (changed.certificate, changed.isRaw, changed.expiresAt) = (der, isRaw, end)
            (changed.request, changed.proof, changed.provedAt) = (nil, nil, nil)
            enrolment.documentKeys[tag] = changed
        }
    }

    /// Stores the key and the request for a tag: those that are open, if there are any.
    private func prepareDocumentKey(
        _ tag: String, isRaw: Bool, hasNewKey: Bool
    ) throws(PhoneError) -> any SigningKey {
        let device = try device()
        var entry = hasNewKey ? nil : enrolment.documentKeys[tag]
        let key = try signing {
            guard let entry else { return try parts.keys.makeSigningKey() }
            return try parts.keys.signingKey(stored: entry.key)
        }
        if entry == nil { entry = DocumentKey(tag: tag, key: key.stored) }
        let name = "twoefay:\(isRaw ? "raw-signer" : "signer"):\(device):\(tag)"
        let request = try signing { try entry?.request ?? CertificateRequest.pem(name: name, key: key) }
        // The relay takes a proof for five minutes, and answers the same one with the same certificate.
        let isYoung = entry?.provedAt.map { (0..<240_000).contains(now.milliseconds - $0.milliseconds) } ?? false
        if entry?.proof == nil || !isYoung {
            let claims = Statement.certificate(
                tag: tag, request: request, for: enrolment.audience, at: now, cryptography)
            entry?.proof = try sign("twoefay-certificate+jwt", claims)
            entry?.provedAt = now
        }
        entry?.request = request
        try change { $0.documentKeys[tag] = entry }
        return key
    }

    /// Signs a document of which the person has seen label and digest, and has agreed to it. It needs
    /// no connection.
    public func sign(document: [UInt8], label: String, tag: String) throws(PhoneError) -> DocumentSignature {
        guard let entry = enrolment.documentKeys[tag], entry.certificate != nil else {
            throw .unable("this phone has no certificate for this tag")
        }
        guard (1...128).contains(label.unicodeScalars.count), label.unicodeScalars.allSatisfy(ScreenText.isVisible)
        else { throw .unable("the label cannot be shown") }
        let device = try device()
        let claims = Statement.document(
            tag: tag, label: label, digest: cryptography.sha256(document), for: enrolment.audience, at: now)
        return try signing {
            let key = try parts.keys.signingKey(stored: entry.key)
            guard entry.isRaw else {
                return .statement(try JWS.sign("twoefay-document+jwt", ("kid", .string(device)), claims, by: key))
            }
            return .raw(ECDSASignature.der(raw: try key.sign(document)) ?? [])
        }
    }
}
