import Bytes

/// The certificates of a message that holds nothing else: SignedData without signatures
/// ("certs-only", RFC 5652), in which EST returns certificates.
///
/// The message has no signature, so a caller must verify the path of each certificate before it
/// relies on one.
///
/// Tests: `CertificateBagTests`.
public enum CertificateBag {
    /// The maximum number of bytes, which bounds the work for a peer.
    public static let maxBytes = 65_536

    private static let signedData: [UInt8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02]
    private static let data: [UInt8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01]

    /// Reads the certificates, in the order of the message.
    public static func certificates(_ der: [UInt8]) throws(CryptoFailure) -> [Certificate] {
        guard der.count <= maxBytes else { throw CryptoFailure("the certificates are too long") }
        let found: [[UInt8]]
        do throws(DERError) {
            found = try read(try BER.definite(der))
        } catch {
            throw CryptoFailure("the certificates are not a certs-only message: \(error)")
        }
        guard !found.isEmpty, found.count <= CertificatePath.maxCertificates else {
            throw CryptoFailure("the message has \(found.count) certificates")
        }
        var all: [Certificate] = []
        for der in found { all.append(try Certificate(der: der)) }
        return all
    }

    /// Reads certificates in a form in which programs write them: PEM with certificates or with one
    /// message, or a message in base64 or DER.
    public static func certificates(text: [UInt8]) throws(CryptoFailure) -> [Certificate] {
        guard text.count <= maxBytes else { throw CryptoFailure("the certificates are too long") }
        if text.first == 0x30 { return try certificates(text) }
        let all = try Certificate.all(pem: text)
        guard all.isEmpty else {
            guard all.count <= CertificatePath.maxCertificates else {
                throw CryptoFailure("there are \(all.count) certificates")
            }
            return all
        }
        for label in ["PKCS7", "CMS"] {
            if let message = try PEM.blocks(label, text, atMost: 1).first { return try certificates(message) }
        }
        return try certificates(base64: text)
    }

    /// Reads a message in base64, whose line breaks count for nothing (RFC 8951).
    public static func certificates(base64 text: [UInt8]) throws(CryptoFailure) -> [Certificate] {
        let digits = text.filter { ![0x0a, 0x0d, 0x20, 0x09].contains($0) }
        guard let message = Base64.decode(String(decoding: digits, as: UTF8.self)), !message.isEmpty else {
            throw CryptoFailure("the text is no base64")
        }
        return try certificates(message)
    }

    private static func read(_ der: [UInt8]) throws(DERError) -> [[UInt8]] {
        var whole = DERReader(der)
        var info = try whole.open(.sequence)
        try whole.finish()
        guard try info.content(.identifier).elementsEqual(signedData) else { throw .content }
        var tagged = try info.open(.explicit(0))
        try info.finish()
        var signed = try tagged.open(.sequence)
        try tagged.finish()
        guard try (1...3).contains(signed.integer()) else { throw .content }
        _ = try signed.content(.set)  // The digest algorithms of no signature.
        var content = try signed.open(.sequence)
        guard try content.content(.identifier).elementsEqual(data) else { throw .content }
        try content.finish()
        var found: [[UInt8]] = []
        var bag = try signed.open(.explicit(0))
        while !bag.isAtEnd { found.append(DER.value(0x30, try bag.content(.sequence))) }
        var next = try signed.next()
        // Revocation lists, which nobody needs here.
        if next.tag == .explicit(1) { next = try signed.next() }
        guard next.tag == .set, next.content.isEmpty else { throw .content }
        try signed.finish()
        return found
    }
}
