import Attestation
import Bytes
import Crypto
import World

/// A phone with Android whose chain leads to the a simulated root. Tests change one
/// property.
public struct SimulatedAndroid: Sendable {
    public var version = 300
    public var attestationLevel = 1
    public var keyLevel = 1
    public var purposes = [2]
    public var algorithm = 3
    public var origin: Int? = 0
    public var isLocked = true
    public var bootState: Int? = 0
    public var needsNoAuthentication = true
    /// The seconds for which an authentication counts; nil if each use of the key needs one.
    public var authenticationTimeout: Int?
    public var isTimeoutBySoftware = false
    public var isForAllApps = false
    public var package = "com.example.app"
    public var packageVersion = 42
    public var signature = [UInt8](repeating: 7, count: 32)
    public var osVersion = 150_001
    public var patchLevel = 202_607
    /// Whether the software states what the hardware should state.
    public var isStatedBySoftware = false

    public init() {}

    /// The app that these phones have, with another certificate that may sign it.
    public static let app = AndroidApp(
        package: "com.example.app",
        signatureDigests: [[UInt8](repeating: 9, count: 32), [UInt8](repeating: 7, count: 32)])

    public func description(_ challenge: [UInt8]) -> [UInt8] {
        let application = DERWriter.sequence(
            DERWriter.set([DERWriter.sequence(DERWriter.octets(Array(package.utf8)), DERWriter.integer(packageVersion))]
            ),
            DERWriter.set([DERWriter.octets(signature)]))
        var key: [[UInt8]] = [
            DERWriter.tagged(1, DERWriter.set(purposes.map { DERWriter.integer($0) })),
            DERWriter.tagged(2, DERWriter.integer(algorithm)), DERWriter.tagged(3, DERWriter.integer(256)),
            DERWriter.tagged(5, DERWriter.set([DERWriter.integer(4)])), DERWriter.tagged(10, DERWriter.integer(1)),
        ]
        key.append(
            needsNoAuthentication ? DERWriter.tagged(503, DERWriter.null) : DERWriter.tagged(504, DERWriter.integer(2)))
        let timeout = authenticationTimeout.map { DERWriter.tagged(505, DERWriter.integer($0)) } ?? []
        if !isTimeoutBySoftware { key.append(timeout) }
        if isForAllApps { key.append(DERWriter.tagged(600, DERWriter.null)) }
        if let origin { key.append(DERWriter.tagged(702, DERWriter.integer(origin))) }
        if let bootState {
            key.append(
                DERWriter.tagged(
                    704,
                    DERWriter.sequence(
                        DERWriter.octets([1, 2, 3]), DERWriter.boolean(isLocked), DERWriter.enumerated(bootState),
                        DERWriter.octets([UInt8](repeating: 5, count: 32)))))
        }
        key.append(DERWriter.tagged(705, DERWriter.integer(osVersion)))
        key.append(DERWriter.tagged(706, DERWriter.integer(patchLevel)))
        let software =
            (isTimeoutBySoftware ? timeout : []) + DERWriter.tagged(701, DERWriter.integer(1_790_000_000_000))
            + DERWriter.tagged(709, DERWriter.octets(application))
        return DERWriter.sequence(
            DERWriter.integer(version), DERWriter.enumerated(attestationLevel), DERWriter.integer(version),
            DERWriter.enumerated(keyLevel), DERWriter.octets(challenge), DERWriter.octets([]),
            DERWriter.sequence(isStatedBySoftware ? software + key.flatMap { $0 } : software),
            DERWriter.sequence(isStatedBySoftware ? [] : key.flatMap { $0 }))
    }
}

/// The authorities, as those of phones that fetch their chains: root,
/// intermediate and the phone's attestation key.
public struct SimulatedAuthorities: Sendable {
    public let root: SimulatedCertificate
    public let intermediate: SimulatedCertificate
    public let phone: SimulatedCertificate

    public init(_ name: String = "own root") throws { try self.init(root: try SimulatedCertificate.root(name)) }

    /// - Parameter root: the root, whose moment is that of all certificates.
    public init(root: SimulatedCertificate) throws {
        self.root = root
        intermediate = try root.issue(SimulatedCertificate.name("intermediate"), serial: [0x0a, 0xbc])
        phone = try intermediate.issue(SimulatedCertificate.name("phone"), serial: [0x0d, 0xef])
    }

    public var roots: [Certificate] { [root.certificate] }

    /// A chain whose leaf describes its own key.
    public func chain(_ android: SimulatedAndroid, key: P256PrivateKey, challenge: [UInt8]) throws -> [[UInt8]] {
        let leaf = try leaf(key: key, description: android.description(challenge))
        return [leaf, phone, intermediate, root].map(\.certificate.der)
    }

    public func leaf(key: P256PrivateKey, description: [UInt8]) throws -> SimulatedCertificate {
        try phone.issue(
            SimulatedCertificate.name("Android Keystore Key"), key: key, isAuthority: false, serial: [1],
            validity: (Timestamp(seconds: 0), Timestamp(seconds: 1)),
            extensions: [(KeyDescription.identifier, description)])
    }
}

/// CBOR for simulated objects.
public enum CBORWriter {
    public static func head(_ type: UInt8, _ count: Int) -> [UInt8] {
        switch count {
        case 0..<24: [type << 5 | UInt8(count)]
        case 24..<256: [type << 5 | 24, UInt8(count)]
        default: [type << 5 | 25, UInt8(count >> 8), UInt8(count & 0xff)]
        }
    }

    public static func bytes(_ bytes: [UInt8]) -> [UInt8] { head(2, bytes.count) + bytes }
    public static func text(_ text: String) -> [UInt8] { head(3, text.utf8.count) + Array(text.utf8) }
    public static func array(_ values: [[UInt8]]) -> [UInt8] { head(4, values.count) + values.flatMap { $0 } }
    public static func map(_ members: [(String, [UInt8])]) -> [UInt8] {
        head(5, members.count) + members.flatMap { text($0.0) + $0.1 }
    }
}

/// A phone with App Attest whose certificates lead to the a simulated root. Tests change one
/// property.
public struct SimulatedIPhone: Sendable {
    public let key: P256PrivateKey
    public let root: SimulatedCertificate
    public let intermediate: SimulatedCertificate
    public var format = "apple-appattest"
    public var app = "TEAM123456.com.example.app"
    public var counter: UInt32 = 0
    public var aaguid = Array("appattest".utf8) + [UInt8](repeating: 0, count: 7)
    public var credentialID: [UInt8]?
    public var coseKey: P256PublicKey?
    public var extensions: [UInt8] = []
    public var validity: (from: Timestamp, to: Timestamp)?
    /// Extensions of the leaf beside the nonce.
    public var leafExtensions: [(identifier: String, value: [UInt8])] = []
    public var hasNonce = true

    public static let app = "TEAM123456.com.example.app"

    public init() throws { try self.init(root: try SimulatedCertificate.root("own root")) }

    /// - Parameters:
    ///   - root: the root, whose moment is that of all certificates.
    ///   - key: the key of App Attest; a new one by default.
    public init(root: SimulatedCertificate, key: P256PrivateKey? = nil) throws {
        self.key = try key ?? P256PrivateKey.generate()
        self.root = root
        intermediate = try root.issue(SimulatedCertificate.name("own App Attestation CA"))
    }

    public var keyID: [UInt8] { SHA256.hash(key.publicKey.x963) }

    public func authenticatorData() -> [UInt8] {
        let id = credentialID ?? keyID
        let cose = coseKey ?? key.publicKey
        return header(counter) + aaguid + [UInt8(id.count >> 8), UInt8(id.count & 0xff)] + id
            + [0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21] + CBORWriter.bytes(Array(cose.x963[1..<33])) + [0x22]
            + CBORWriter.bytes(Array(cose.x963[33...])) + extensions
    }

    private func header(_ counter: UInt32) -> [UInt8] {
        SHA256.hash(Array(app.utf8)) + [0x40] + withUnsafeBytes(of: counter.bigEndian) { Array($0) }
    }

    public func object(_ clientDataHash: [UInt8]) throws -> [UInt8] {
        let data = authenticatorData()
        let nonce = SHA256.hash(data + clientDataHash)
        let statement = DERWriter.sequence(DERWriter.tagged(1, DERWriter.octets(nonce)))
        let leaf = try intermediate.issue(
            SimulatedCertificate.name("leaf"), key: key, isAuthority: false, validity: validity,
            extensions: (hasNonce ? [("1.2.840.113635.100.8.2", statement)] : []) + leafExtensions)
        return CBORWriter.map([
            ("fmt", CBORWriter.text(format)),
            (
                "attStmt",
                CBORWriter.map([
                    (
                        "x5c",
                        CBORWriter.array([
                            CBORWriter.bytes(leaf.certificate.der), CBORWriter.bytes(intermediate.certificate.der),
                        ])
                    ), ("receipt", CBORWriter.bytes([1, 2, 3])),
                ])
            ), ("authData", CBORWriter.bytes(data)),
        ])
    }

    public func assertion(_ clientDataHash: [UInt8], counter: UInt32, extensions: [UInt8] = []) throws -> [UInt8] {
        let data = header(counter) + extensions
        let signature = SimulatedCertificate.der(try key.sign(SHA256.hash(data + clientDataHash)))
        return CBORWriter.map([
            ("signature", CBORWriter.bytes(signature)), ("authenticatorData", CBORWriter.bytes(data)),
        ])
    }
}
