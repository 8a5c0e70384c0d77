import Attestation
import Bytes
import Crypto
import JSON
import SimulatedAttestation
import Synchronization
import World

/// The simulated platform of a phone, which attests the phone's key and its answers. Only a relay
/// that trusts the simulated root accepts what it says.
///
/// A real phone asks its platform instead, as docs/phones/attestation.md describes.
public struct SimulatedPlatform: Sendable {
    public enum Kind: String, Sendable, CaseIterable {
        case ios, android
    }

    public let kind: Kind
    /// The App ID, or the package name.
    public let app: String
    /// The key of App Attest, which makes assertions; Android has none.
    private let key: P256PrivateKey?

    public init(_ kind: Kind, app: String? = nil) throws(CryptoFailure) {
        self.kind = kind
        self.app = app ?? (kind == .ios ? SimulatedIPhone.app : SimulatedAndroid.app.package)
        key = kind == .ios ? try P256PrivateKey.generate() : nil
    }

    /// The key of the settings file that names the app, and its value.
    public var setting: (key: String, value: String) {
        switch kind {
        case .ios: ("attestation.ios_apps", app)
        case .android:
            ("attestation.android_apps", "\(app)=\(Hex.encode([UInt8](repeating: 7, count: 32)))")
        }
    }

    /// Returns what the platform states about the key of an enrolment.
    func statement(
        about enrolment: Enrolment, code: String, root: SimulatedCertificate
    ) throws -> AttestationStatement {
        let subject = AttestationSubject(
            audience: enrolment.audience, user: enrolment.token, activationCode: code, key: enrolment.key.publicKey)
        switch kind {
        case .ios:
            var phone = try SimulatedIPhone(root: root, key: key)
            phone.app = app
            return .apple(
                keyID: phone.keyID, object: try phone.object(SHA256.hash(AttestationChallenge.clientData(subject))))
        case .android:
            var phone = SimulatedAndroid()
            phone.package = app
            return .android(
                chain: try SimulatedAuthorities(root: root).chain(
                    phone, key: enrolment.key, challenge: AttestationChallenge.android(subject)))
        }
    }

    /// The counter of the last assertion of this process.
    private static let counter = Mutex<UInt32>(0)

    /// Returns an assertion over a signed decision; nil if the platform makes none.
    ///
    /// The counter is the time in hundredths of a second since the phone was enrolled, so that it
    /// grows and need not be stored: no program starts and answers twice in that time. It is enough
    /// for a year, and a simulated phone lives for a test.
    func assertion(over statement: String, at now: Timestamp, enrolledAt: Timestamp) throws -> String? {
        guard let key else { return nil }
        let hundredths = (now - enrolledAt).wholeMilliseconds / 10
        let counter = Self.counter.withLock { last in
            last = max(last + 1, UInt32(clamping: hundredths))
            return last
        }
        var phone = try SimulatedIPhone(root: try SimulatedCertificate.root("unused"), key: key)
        phone.app = app
        return Base64URL.encode(try phone.assertion(SHA256.hash(Array(statement.utf8)), counter: counter))
    }
}

/// Stores the platform with the enrolment.
extension SimulatedPlatform {
    func json() throws(CryptoFailure) -> JSONObject {
        var object: JSONObject = ["kind": .string(kind.rawValue), "app": .string(app)]
        if let key { object.set("key", .string(String(decoding: try key.pem().reveal(), as: UTF8.self))) }
        return object
    }

    init?(_ object: JSONObject) throws(CryptoFailure) {
        guard let kind = object["kind"]?.string.flatMap({ Kind(rawValue: $0) }), let app = object["app"]?.string
        else { return nil }
        self.kind = kind
        self.app = app
        key = try object["key"]?.string.map { pem throws(CryptoFailure) in try P256PrivateKey(pem: Secret(utf8: pem)) }
        if kind == .ios, key == nil { return nil }
    }
}

/// The root of simulated platforms, which is not the root of any manufacturer.
public struct SimulatedRoot: Sendable {
    private static let name = "Simulated attestation root, for tests only"

    public let certificate: Certificate
    public let key: P256PrivateKey

    public init(at now: Timestamp) throws {
        let root = try SimulatedCertificate.root(Self.name, at: now)
        (certificate, key) = (root.certificate, root.key)
    }

    public init(certificate: Certificate, key: P256PrivateKey) {
        self.certificate = certificate
        self.key = key
    }

    func authority(at now: Timestamp) -> SimulatedCertificate {
        SimulatedCertificate(root: Self.name, certificate: certificate, key: key, at: now)
    }
}
