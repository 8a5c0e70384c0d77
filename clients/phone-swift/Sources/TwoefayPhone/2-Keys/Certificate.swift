/// A public key that verifies signatures of the relay or of its authority.
public struct VerificationKey: Sendable, Equatable {
    /// The algorithm of a JWS by such a key.
    public enum Algorithm: String, Sendable {
        case es256 = "ES256"
        case es384 = "ES384"
        case rs256 = "RS256"
    }

    public let algorithm: Algorithm
    /// The SubjectPublicKeyInfo in DER.
    public let info: [UInt8]
    /// The key itself: the point (4, x, y), or RSAPublicKey in DER.
    public let bits: [UInt8]

    private static let ecKey: [UInt8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01]
    private static let p256: [UInt8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07]
    private static let p384: [UInt8] = [0x2b, 0x81, 0x04, 0x00, 0x22]
    private static let rsa: [UInt8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01]

    public init?(info: [UInt8]) {
        var outer = DER(info)
        guard let sequence = outer.read(DER.Tag.sequence), outer.isAtEnd else { return nil }
        var inner = sequence.inside
        guard var algorithm = inner.read(DER.Tag.sequence)?.inside, let text = inner.read(DER.Tag.bitString),
            let kind = algorithm.read(DER.Tag.objectIdentifier), text.content.first == 0
        else { return nil }
        switch Array(kind.content) {
        case Self.rsa: self.algorithm = .rs256
        case Self.ecKey:
            switch algorithm.read(DER.Tag.objectIdentifier).map({ Array($0.content) }) {
            case Self.p256: self.algorithm = .es256
            case Self.p384: self.algorithm = .es384
            default: return nil
            }
        default: return nil
        }
        self.info = info
        bits = Array(text.content.dropFirst())
    }

    public init(_ key: P256PublicKey) {
        algorithm = .es256
        info = key.info
        bits = key.x963
    }
}

/// A certificate (RFC 5280), as far as the app needs it. Its signature, name and dates are checked
/// by the system.
public struct Certificate: Sendable, Equatable {
    public let der: [UInt8]
    /// The SubjectPublicKeyInfo in DER, to which pins refer.
    public let keyInfo: [UInt8]
    public let notBefore: Timestamp

    public init?(der: [UInt8]) {
        var outer = DER(der)
        guard let certificate = outer.read(DER.Tag.sequence), outer.isAtEnd else { return nil }
        var parts = certificate.inside
        guard var content = parts.read(DER.Tag.sequence)?.inside else { return nil }
        if content.nextTag == DER.Tag.version { _ = content.read() }
        guard content.read(DER.Tag.integer) != nil, content.read(DER.Tag.sequence) != nil,
            content.read(DER.Tag.sequence) != nil, var validity = content.read(DER.Tag.sequence)?.inside,
            let begin = validity.read().flatMap(Self.time), content.read(DER.Tag.sequence) != nil,
            let info = content.read(DER.Tag.sequence)
        else { return nil }
        self.der = der
        keyInfo = Array(info.whole)
        notBefore = begin
    }

    private static func time(_ element: DER.Element) -> Timestamp? {
        var text = String(decoding: element.content, as: UTF8.self)
        if element.tag == DER.Tag.utcTime { text = (text < "50" ? "20" : "19") + text }
        guard text.utf8.count == 15, text.hasSuffix("Z") else { return nil }
        let digits = Array(text)
        func part(_ range: Range<Int>) -> String { String(digits[range]) }
        return Timestamp(
            rfc3339: "\(part(0..<4))-\(part(4..<6))-\(part(6..<8))T\(part(8..<10)):\(part(10..<12)):\(part(12..<14))Z")
    }
}

/// The rule of pins, without the work of the system: the one certificate that may be the anchor of
/// a connection.
public enum PinRule {
    /// Returns the first authority of the chain that has a pinned key; nil if there is none. The
    /// connection must then be refused.
    ///
    /// The caller checks that the first certificate of the chain leads to this authority and to no
    /// other, is valid now, and is for the host.
    ///
    /// - Parameters:
    ///   - chain: the certificates of the connection in DER, the relay's own first.
    ///   - pins: SHA-256 of SubjectPublicKeyInfos.
    public static func anchor(
        in chain: [[UInt8]], pins: [[UInt8]], _ cryptography: any Cryptography
    ) -> Certificate? {
        for der in chain.dropFirst() {
            guard let certificate = Certificate(der: der) else { continue }
            if pins.contains(cryptography.sha256(certificate.keyInfo)) { return certificate }
        }
        return nil
    }
}
