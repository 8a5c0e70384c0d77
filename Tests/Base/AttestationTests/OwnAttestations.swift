import Attestation
import Bytes
import Crypto
import World

/// A phone with Android whose chain leads to the tests' own root. Tests change one property.
struct OwnAndroid {
    var version = 300
    var attestationLevel = 1
    var keyLevel = 1
    var purposes = [2]
    var algorithm = 3
    var origin: Int? = 0
    var isLocked = true
    var bootState: Int? = 0
    var needsNoAuthentication = true
    /// The seconds for which an authentication counts; nil if each use of the key needs one.
    var authenticationTimeout: Int?
    var isTimeoutBySoftware = false
    var isForAllApps = false
    var package = "com.example.app"
    var packageVersion = 42
    var signature = [UInt8](repeating: 7, count: 32)
    var osVersion = 150_001
    var patchLevel = 202_607
    /// Whether the tests' software states what the hardware should state.
    var isStatedBySoftware = false

    static let app = AndroidApp(
        package: "com.example.app",
        signatureDigests: [[UInt8](repeating: 9, count: 32), [UInt8](repeating: 7, count: 32)])

    func description(_ challenge: [UInt8]) -> [UInt8] {
        let application = TestDER.sequence(
            TestDER.set([TestDER.sequence(TestDER.octets(Array(package.utf8)), TestDER.integer(packageVersion))]),
            TestDER.set([TestDER.octets(signature)]))
        var key: [[UInt8]] = [
            TestDER.tagged(1, TestDER.set(purposes.map { TestDER.integer($0) })),
            TestDER.tagged(2, TestDER.integer(algorithm)), TestDER.tagged(3, TestDER.integer(256)),
            TestDER.tagged(5, TestDER.set([TestDER.integer(4)])), TestDER.tagged(10, TestDER.integer(1)),
        ]
        key.append(
            needsNoAuthentication ? TestDER.tagged(503, TestDER.null) : TestDER.tagged(504, TestDER.integer(2)))
        let timeout = authenticationTimeout.map { TestDER.tagged(505, TestDER.integer($0)) } ?? []
        if !isTimeoutBySoftware { key.append(timeout) }
        if isForAllApps { key.append(TestDER.tagged(600, TestDER.null)) }
        if let origin { key.append(TestDER.tagged(702, TestDER.integer(origin))) }
        if let bootState {
            key.append(
                TestDER.tagged(
                    704,
                    TestDER.sequence(
                        TestDER.octets([1, 2, 3]), TestDER.boolean(isLocked), TestDER.enumerated(bootState),
                        TestDER.octets([UInt8](repeating: 5, count: 32)))))
        }
        key.append(TestDER.tagged(705, TestDER.integer(osVersion)))
        key.append(TestDER.tagged(706, TestDER.integer(patchLevel)))
        let software =
            (isTimeoutBySoftware ? timeout : []) + TestDER.tagged(701, TestDER.integer(1_790_000_000_000))
            + TestDER.tagged(709, TestDER.octets(application))
        return TestDER.sequence(
            TestDER.integer(version), TestDER.enumerated(attestationLevel), TestDER.integer(version),
            TestDER.enumerated(keyLevel), TestDER.octets(challenge), TestDER.octets([]),
            TestDER.sequence(isStatedBySoftware ? software + key.flatMap { $0 } : software),
            TestDER.sequence(isStatedBySoftware ? [] : key.flatMap { $0 }))
    }
}

/// The authorities of the tests' own, as those of phones that fetch their chains: root,
/// intermediate and the phone's attestation key.
struct OwnAuthorities {
    let root: OwnCertificate
    let intermediate: OwnCertificate
    let phone: OwnCertificate

    init(_ name: String = "own root") throws {
        root = try OwnCertificate.root(name)
        intermediate = try root.issue(OwnCertificate.name("intermediate"), serial: [0x0a, 0xbc])
        phone = try intermediate.issue(OwnCertificate.name("phone"), serial: [0x0d, 0xef])
    }

    var roots: [Certificate] { [root.certificate] }

    /// A chain whose leaf describes its own key.
    func chain(_ android: OwnAndroid, key: P256PrivateKey, challenge: [UInt8]) throws -> [[UInt8]] {
        let leaf = try leaf(key: key, description: android.description(challenge))
        return [leaf, phone, intermediate, root].map(\.certificate.der)
    }

    func leaf(key: P256PrivateKey, description: [UInt8]) throws -> OwnCertificate {
        try phone.issue(
            OwnCertificate.name("Android Keystore Key"), key: key, isAuthority: false, serial: [1],
            validity: (Timestamp(seconds: 0), Timestamp(seconds: 1)),
            extensions: [(KeyDescription.identifier, description)])
    }
}

/// CBOR for objects of the tests' own.
enum TestCBOR {
    static func head(_ type: UInt8, _ count: Int) -> [UInt8] {
        switch count {
        case 0..<24: [type << 5 | UInt8(count)]
        case 24..<256: [type << 5 | 24, UInt8(count)]
        default: [type << 5 | 25, UInt8(count >> 8), UInt8(count & 0xff)]
        }
    }

    static func bytes(_ bytes: [UInt8]) -> [UInt8] { head(2, bytes.count) + bytes }
    static func text(_ text: String) -> [UInt8] { head(3, text.utf8.count) + Array(text.utf8) }
    static func array(_ values: [[UInt8]]) -> [UInt8] { head(4, values.count) + values.flatMap { $0 } }
    static func map(_ members: [(String, [UInt8])]) -> [UInt8] {
        head(5, members.count) + members.flatMap { text($0.0) + $0.1 }
    }
}

/// A phone with App Attest whose certificates lead to the tests' own root. Tests change one
/// property.
struct OwnApple {
    let key: P256PrivateKey
    let root: OwnCertificate
    let intermediate: OwnCertificate
    var format = "apple-appattest"
    var app = "TEAM123456.com.example.app"
    var counter: UInt32 = 0
    var aaguid = Array("appattest".utf8) + [UInt8](repeating: 0, count: 7)
    var credentialID: [UInt8]?
    var coseKey: P256PublicKey?
    var extensions: [UInt8] = []
    var validity: (from: Timestamp, to: Timestamp)?
    /// Extensions of the leaf beside the nonce.
    var leafExtensions: [(identifier: String, value: [UInt8])] = []
    var hasNonce = true

    static let app = "TEAM123456.com.example.app"

    init() throws {
        key = try P256PrivateKey.generate()
        root = try OwnCertificate.root("own root")
        intermediate = try root.issue(OwnCertificate.name("own App Attestation CA"))
    }

    var keyID: [UInt8] { SHA256.hash(key.publicKey.x963) }

    func authenticatorData() -> [UInt8] {
        let id = credentialID ?? keyID
        let cose = coseKey ?? key.publicKey
        return header(counter) + aaguid + [UInt8(id.count >> 8), UInt8(id.count & 0xff)] + id
            + [0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21] + TestCBOR.bytes(Array(cose.x963[1..<33])) + [0x22]
            + TestCBOR.bytes(Array(cose.x963[33...])) + extensions
    }

    private func header(_ counter: UInt32) -> [UInt8] {
        SHA256.hash(Array(app.utf8)) + [0x40] + withUnsafeBytes(of: counter.bigEndian) { Array($0) }
    }

    func object(_ clientDataHash: [UInt8]) throws -> [UInt8] {
        let data = authenticatorData()
        let nonce = SHA256.hash(data + clientDataHash)
        let statement = TestDER.sequence(TestDER.tagged(1, TestDER.octets(nonce)))
        let leaf = try intermediate.issue(
            OwnCertificate.name("leaf"), key: key, isAuthority: false, validity: validity,
            extensions: (hasNonce ? [("1.2.840.113635.100.8.2", statement)] : []) + leafExtensions)
        return TestCBOR.map([
            ("fmt", TestCBOR.text(format)),
            (
                "attStmt",
                TestCBOR.map([
                    (
                        "x5c",
                        TestCBOR.array([
                            TestCBOR.bytes(leaf.certificate.der), TestCBOR.bytes(intermediate.certificate.der),
                        ])
                    ), ("receipt", TestCBOR.bytes([1, 2, 3])),
                ])
            ), ("authData", TestCBOR.bytes(data)),
        ])
    }

    func assertion(_ clientDataHash: [UInt8], counter: UInt32, extensions: [UInt8] = []) throws -> [UInt8] {
        let data = header(counter) + extensions
        let signature = OwnCertificate.der(try key.sign(SHA256.hash(data + clientDataHash)))
        return TestCBOR.map([("signature", TestCBOR.bytes(signature)), ("authenticatorData", TestCBOR.bytes(data))])
    }
}
