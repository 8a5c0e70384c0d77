/// A request of a key's holder for a certificate (PKCS #10, RFC 2986), with a P-256 key. Its
/// signature is valid, so its author holds the private key.
///
/// Purpose: a phone sends one beside its proof, and authorities outside of the installation need
/// it.
///
/// Invariant: a value exists only if the bytes are DER, consist of nothing else, and are signed
/// with ECDSA and SHA-256 by the key that they contain. The names and attributes are not judged:
/// the authority of the installation ignores them. Tests: `SigningRequestTests`.
public struct SigningRequest: Sendable, Hashable {
    public let der: [UInt8]
    public let key: P256PublicKey
    /// The subject's name in DER.
    public let subject: [UInt8]
    /// The attributes in DER, one after the other; empty if there are none.
    let attributes: [UInt8]

    /// The maximum number of bytes of the PEM text, which bounds the work for a peer.
    public static let maxBytes = 8192
    private static let label = "CERTIFICATE REQUEST"

    /// Reads PEM text with one request.
    public init(pem: [UInt8]) throws(CryptoFailure) {
        guard pem.count <= Self.maxBytes else { throw CryptoFailure("the certificate request is too long") }
        let blocks = try PEM.blocks(Self.label, pem, atMost: 2)
        guard blocks.count == 1 else { throw CryptoFailure("the text must have one \(Self.label)") }
        try self.init(der: blocks[0])
    }

    public init(der: [UInt8]) throws(CryptoFailure) {
        let content: Content
        do throws(DERError) {
            content = try Content(der)
        } catch {
            throw CryptoFailure("the certificate request is not valid DER: \(error)")
        }
        guard content.algorithm == X509Identifier.ecdsaWithSHA256 else {
            throw CryptoFailure("the certificate request is not signed by ECDSA with SHA-256")
        }
        key = try P256PublicKey(spki: content.spki)
        guard key.verify(derSignature: content.signature, over: content.info) else {
            throw CryptoFailure("the certificate request is not signed by its key")
        }
        self.der = der
        subject = content.subject
        attributes = content.attributes
    }

    /// Makes a request for a certificate with this name.
    public init(_ name: CertificateName, key: P256PrivateKey) throws(CryptoFailure) {
        try self.init(subject: name.subject, attributes: name.attributes, key: key)
    }

    /// Makes a request. Nothing but the common name is in it.
    public init(commonName: String, key: P256PrivateKey) throws(CryptoFailure) {
        try self.init(
            subject: DER.sequence(DER.set(DER.sequence(X509Identifier.commonName, DER.utf8(commonName)))),
            attributes: [], key: key)
    }

    private init(subject: [UInt8], attributes: [UInt8], key: P256PrivateKey) throws(CryptoFailure) {
        let info = DER.sequence(DER.integer([0]), subject, key.publicKey.spki, DER.explicit(0, attributes))
        guard let signature = ECDSASignature.der(fromRaw: try key.sign(info)) else {
            throw CryptoFailure("the key made an invalid signature")
        }
        der = DER.sequence(info, X509Identifier.ecdsaWithSHA256, DER.bits(signature))
        self.subject = subject
        self.attributes = attributes
        self.key = key.publicKey
    }

    public func pem() throws(CryptoFailure) -> [UInt8] { try PEM.encode(Self.label, der) }
}

/// The parts of a request. `DERReader` accepts one encoding of each value only, so a part that is
/// encoded again has the bytes that were read.
private struct Content {
    /// The signed part.
    let info: [UInt8]
    let subject: [UInt8]
    let spki: [UInt8]
    let attributes: [UInt8]
    let algorithm: [UInt8]
    let signature: [UInt8]

    private static let bits = DERTag(kind: 0, isConstructed: false, number: 3)

    init(_ der: [UInt8]) throws(DERError) {
        var outer = DERReader(der)
        var request = try outer.open(.sequence)
        try outer.finish()
        info = try Self.sequence(&request)
        algorithm = try Self.sequence(&request)
        let signature = try request.content(Self.bits)
        try request.finish()
        guard signature.first == 0 else { throw .content }
        self.signature = Array(signature.dropFirst())

        var whole = DERReader(info)
        var parts = try whole.open(.sequence)
        guard try parts.integer() == 0 else { throw .content }
        subject = try Self.sequence(&parts)
        try Self.checkName(subject)
        spki = try Self.sequence(&parts)
        let content = try parts.content(.explicit(0))
        self.attributes = Array(content)
        var attributes = DERReader(self.attributes)
        while !attributes.isAtEnd {
            var attribute = try attributes.open(.sequence)
            _ = try attribute.content(.identifier)
            _ = try attribute.content(.set)
            try attribute.finish()
        }
        try parts.finish()
    }

    /// Reads a sequence. Returns it with its tag and length.
    private static func sequence(_ reader: inout DERReader) throws(DERError) -> [UInt8] {
        DER.value(0x30, try reader.content(.sequence))
    }

    /// Throws unless this is a sequence of sets of pairs of a type and a value.
    private static func checkName(_ name: [UInt8]) throws(DERError) {
        var reader = DERReader(name)
        var parts = try reader.open(.sequence)
        while !parts.isAtEnd {
            var set = try parts.open(.set)
            repeat {
                var pair = try set.open(.sequence)
                _ = try pair.content(.identifier)
                _ = try pair.next()
                try pair.finish()
            } while !set.isAtEnd
        }
    }
}
