import Glibc
import World

/// The content of a certificate except its serial number, issuer and signature. Nothing is
/// validated, because tests use it to make certificates that must be refused.
public struct CertificateRequest: Sendable {
    public enum Name: Sendable, Equatable {
        case dns(String)
        /// An address of 4 or 16 bytes.
        case ip([UInt8])
        case uri(String)

        /// Makes an address if the text is one, otherwise a host name.
        public init(host: String) { self = Self.address(host).map { .ip($0) } ?? .dns(host) }

        private static func address(_ text: String) -> [UInt8]? {
            for (family, count) in [(AF_INET, 4), (AF_INET6, 16)] {
                var bytes = [UInt8](repeating: 0, count: count)
                if inet_pton(family, text, &bytes) == 1 { return bytes }
            }
            return nil
        }
    }

    public enum Usage: Sendable {
        case clientAuth
        case serverAuth
        /// Signatures over documents for people (RFC 9336).
        case documentSigning
    }

    public var key: P256PublicKey
    /// The common name. It is omitted if it is empty or longer than the 64 characters that X.509
    /// allows.
    public var commonName: String
    public var names: [Name]
    public var usages: [Usage]
    public var notBefore: Timestamp
    public var notAfter: Timestamp
    /// Whether the certificate may issue others. They may not be authorities themselves.
    public var isAuthority: Bool
    /// The URL of the issuer's revocation list.
    public var revocationListURL: String?

    public init(
        key: P256PublicKey, commonName: String = "", names: [Name] = [], usages: [Usage] = [], notBefore: Timestamp,
        notAfter: Timestamp, isAuthority: Bool = false
    ) {
        self.key = key
        self.commonName = commonName
        self.names = names
        self.usages = usages
        self.notBefore = notBefore
        self.notAfter = notAfter
        self.isAuthority = isAuthority
    }
}

extension CertificateRequest {
    /// The subject (RFC 5280 §4.1.2.6).
    func subject() -> [UInt8] {
        guard !commonName.isEmpty, commonName.unicodeScalars.count <= 64 else { return DER.sequence() }
        return DER.sequence(DER.set(DER.sequence(X509Identifier.commonName, DER.utf8(commonName))))
    }

    /// The extensions (RFC 5280 §4.2).
    func extensions(authorityKeyID: [UInt8]) -> [UInt8] {
        var all: [[UInt8]] = []
        func add(_ identifier: [UInt8], critical: Bool = false, _ value: [UInt8]) {
            all.append(DER.sequence(identifier, critical ? DER.boolean(true) : [], DER.octets(value)))
        }
        if isAuthority {
            add(
                X509Identifier.basicConstraints, critical: true,
                DER.sequence(DER.boolean(true), DER.integer([0])))
            add(X509Identifier.keyUsage, critical: true, DER.bits([0b0000_0110], unused: 1))  // keyCertSign, cRLSign
        } else {
            add(X509Identifier.basicConstraints, critical: true, DER.sequence())
            add(X509Identifier.keyUsage, critical: true, DER.bits([0b1000_0000], unused: 7))  // digitalSignature
        }
        if !usages.isEmpty {
            let identifiers = usages.flatMap { usage in
                switch usage {
                case .serverAuth: X509Identifier.serverAuth
                case .clientAuth: X509Identifier.clientAuth
                case .documentSigning: X509Identifier.documentSigning
                }
            }
            add(X509Identifier.extendedKeyUsage, DER.sequence(identifiers))
        }
        if !names.isEmpty {
            let alternatives = names.flatMap { name in
                switch name {
                case .dns(let text): DER.value(0x82, Array(text.utf8))
                case .uri(let text): DER.value(0x86, Array(text.utf8))
                case .ip(let bytes): DER.value(0x87, bytes)
                }
            }
            // RFC 5280 requires critical alternative names if the subject is empty.
            add(X509Identifier.subjectAltName, critical: subject().count == 2, DER.sequence(alternatives))
        }
        add(X509Identifier.subjectKeyID, DER.octets(X509Identifier.keyID(of: key)))
        add(X509Identifier.authorityKeyID, DER.sequence(DER.value(0x80, authorityKeyID)))
        if let revocationListURL {
            let name = DER.value(0x86, Array(revocationListURL.utf8))
            add(
                X509Identifier.revocationListPoints,
                DER.sequence(DER.sequence(DER.explicit(0, DER.explicit(0, name)))))
        }
        return DER.explicit(3, DER.sequence(all.flatMap { $0 }))
    }
}

/// DER-encoded object identifiers, each encoded once.
enum X509Identifier {
    static let ecdsaWithSHA256 = DER.sequence(
        DER.identifier([0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]))
    static let commonName = DER.identifier([0x55, 0x04, 0x03])
    static let subjectKeyID = DER.identifier([0x55, 0x1d, 0x0e])
    static let keyUsage = DER.identifier([0x55, 0x1d, 0x0f])
    static let subjectAltName = DER.identifier([0x55, 0x1d, 0x11])
    static let basicConstraints = DER.identifier([0x55, 0x1d, 0x13])
    static let crlNumber = DER.identifier([0x55, 0x1d, 0x14])
    static let reasonCode = DER.identifier([0x55, 0x1d, 0x15])
    static let revocationListPoints = DER.identifier([0x55, 0x1d, 0x1f])
    static let authorityKeyID = DER.identifier([0x55, 0x1d, 0x23])
    static let extendedKeyUsage = DER.identifier([0x55, 0x1d, 0x25])
    static let serverAuth = DER.identifier([0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01])
    static let documentSigning = DER.identifier([0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x24])
    static let clientAuth = DER.identifier([0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02])

    /// The key identifier of RFC 7093 §2, method 1.
    static func keyID(of key: P256PublicKey) -> [UInt8] { Array(SHA256.hash(key.x963).prefix(20)) }
}
