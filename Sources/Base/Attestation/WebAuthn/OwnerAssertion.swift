import Bytes
import Crypto
import JSON

/// An assertion of WebAuthn over a phone's signed decision. It shows that the authenticator of the
/// page has checked its owner for exactly this decision: the challenge is the SHA-256 of what the
/// phone's key has signed, which is known only when the person has decided.
///
/// The checks are those of WebAuthn Level 2, 7.2, which concern a website that has the credential's
/// key already. The counter is not used: each decision counts once anyway, and platform
/// authenticators leave it at 0.
///
/// Tests: `OwnerAssertionTests`.
public struct OwnerAssertion: Sendable, Equatable {
    public static let maxAuthenticatorData = 1024
    public static let maxClientData = 4096
    public static let maxSignature = 256

    public let authenticatorData: [UInt8]
    public let clientData: [UInt8]
    /// An ECDSA signature in DER.
    public let signature: [UInt8]

    /// The reason why an assertion shows nothing.
    public enum Fault: String, Error, CaseIterable {
        /// The client data is no object of JSON, or the authenticator data is too short.
        case malformed
        /// The phone has no credential.
        case credential
        /// The client data is of another kind than an assertion.
        case type
        case challenge
        case origin
        /// The assertion was made in a frame of another origin.
        case frame
        case rp
        /// The authenticator has not verified its user.
        case verification
        case signature
    }

    public init(authenticatorData: [UInt8], clientData: [UInt8], signature: [UInt8]) {
        self.authenticatorData = authenticatorData
        self.clientData = clientData
        self.signature = signature
    }

    /// Reads the object that a phone sends; nil if it has not this form.
    public init?(json: JSONValue) {
        func bytes(_ name: String, _ range: ClosedRange<Int>) -> [UInt8]? {
            json.object?[name]?.string.flatMap { Base64URL.decode($0) }.flatMap { range.contains($0.count) ? $0 : nil }
        }
        guard let data = bytes("authenticator_data", 37...Self.maxAuthenticatorData),
            let client = bytes("client_data", 1...Self.maxClientData),
            let signature = bytes("signature", 1...Self.maxSignature)
        else { return nil }
        self.init(authenticatorData: data, clientData: client, signature: signature)
    }

    public var json: JSONObject {
        [
            "authenticator_data": .string(Base64URL.encode(authenticatorData)),
            "client_data": .string(Base64URL.encode(clientData)), "signature": .string(Base64URL.encode(signature)),
        ]
    }

    /// The challenge of the assertion over a decision: the SHA-256 of the first two parts of the JWS
    /// with the dot between them. Nil if the text has not three parts.
    public static func challenge(of receipt: String) -> [UInt8]? {
        let parts = receipt.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let end = parts.dropLast().last?.endIndex else { return nil }
        return SHA256.hash(Array(receipt.utf8[..<end]))
    }

    /// Checks the assertion over a decision, or throws the reason why it shows nothing.
    ///
    /// - Parameter app: the origin of the page.
    public func verify(over receipt: String, by passkey: Passkey, of app: String) throws(Fault) {
        guard let challenge = Self.challenge(of: receipt) else { throw .challenge }
        try verify(challenge: challenge, by: passkey, of: app)
    }

    func verify(challenge: [UInt8], by passkey: Passkey, of app: String) throws(Fault) {
        guard let client = (try? JSONReader.read(clientData))?.object, authenticatorData.count >= 37 else {
            throw .malformed
        }
        guard client["type"] == "webauthn.get" else { throw .type }
        // Bytes are compared: Swift's == also accepts another character of the same look for a K.
        guard let named = client["challenge"]?.string, Array(named.utf8) == Array(Base64URL.encode(challenge).utf8)
        else { throw .challenge }
        guard let origin = client["origin"]?.string, Array(origin.utf8) == Array(app.utf8) else { throw .origin }
        guard [nil, .bool(false)].contains(client["crossOrigin"]), client["topOrigin"] == nil else { throw .frame }
        guard Array(authenticatorData.prefix(32)) == SHA256.hash(Array(passkey.rp.utf8)) else { throw .rp }
        // The user was present (bit 0), and was verified (bit 2).
        guard authenticatorData[32] & 0b101 == 0b101 else { throw .verification }
        guard passkey.key.verify(derSignature: signature, over: authenticatorData + SHA256.hash(clientData)) else {
            throw .signature
        }
    }
}
