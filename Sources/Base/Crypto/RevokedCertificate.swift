import Bytes
import World

/// A certificate that was revoked before it expired, as a revocation list names it.
public struct RevokedCertificate: Sendable, Hashable {
    /// The serial number in hexadecimal, as in `Certificate.serial`.
    public let serial: String
    public let at: Timestamp
    /// Whether the revocation may be undone: the certificate is on hold.
    public let isOnHold: Bool

    public init(serial: String, at moment: Timestamp, isOnHold: Bool = false) {
        self.serial = serial
        at = moment
        self.isOnHold = isOnHold
    }

    /// The most bytes of a serial number (RFC 5280 §4.1.2.2).
    static let mostSerialBytes = 20

    /// Whether the text can be the serial number of an entry.
    public static func isSerial(_ text: String) -> Bool {
        guard let number = Hex.decode(text) else { return false }
        return (1...mostSerialBytes).contains(number.count)
    }
}

extension CertificateAuthority {
    /// Makes a certificate revocation list (RFC 5280 §5), in DER. Its number is its date, so a
    /// later list has a higher number.
    ///
    /// - Parameter life: the time until the next list is due.
    public func revocationList(
        _ revoked: [RevokedCertificate], life: Duration, at now: Timestamp
    ) throws(CryptoFailure) -> [UInt8] {
        var entries: [UInt8] = []
        for certificate in revoked {
            guard let number = Hex.decode(certificate.serial), !number.isEmpty else {
                throw CryptoFailure("\"\(certificate.serial)\" is not a serial number in hexadecimal")
            }
            entries += DER.sequence(
                DER.integer(number), DER.time(certificate.at), certificate.isOnHold ? Self.onHold : [])
        }
        let number = withUnsafeBytes(of: UInt64(clamping: now.milliseconds).bigEndian) { Array($0) }
        let extensions = DER.sequence(
            DER.sequence(
                X509Identifier.authorityKeyID,
                DER.octets(DER.sequence(DER.value(0x80, keyID)))),
            DER.sequence(X509Identifier.crlNumber, DER.octets(DER.integer(number))))
        let body = DER.sequence(
            DER.integer([1]), X509Identifier.ecdsaWithSHA256, certificate.subject, DER.time(now - Self.leeway),
            DER.time(now + life), entries.isEmpty ? [] : DER.sequence(entries), DER.explicit(0, extensions))
        return try Self.signed(body, by: key)
    }

    /// Makes a revocation list as text, as a TLS server reads it.
    public func makeCRL(
        revoked: [(serial: String, at: Timestamp)], days: Int, at now: Timestamp
    ) throws(CryptoFailure) -> [UInt8] {
        let list = try revocationList(
            revoked.map { RevokedCertificate(serial: $0.serial, at: $0.at) }, life: .days(days), at: now)
        return try PEM.encode("X509 CRL", list)
    }

    /// The extensions of an entry whose reason is `certificateHold`. Other entries have no reason,
    /// because RFC 5280 §5.3.1 prefers that to `unspecified`.
    private static let onHold = DER.sequence(
        DER.sequence(X509Identifier.reasonCode, DER.octets(DER.value(0x0a, [6]))))
}
