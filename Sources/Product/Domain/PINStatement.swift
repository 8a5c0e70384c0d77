import Bytes
import Crypto
import JSON

/// The statement with which a phone sets, changes or resets its PIN: a `twoefay-pin+jwt`.
///
/// The phone's own key signs the statement. A change also needs a signature of the old PIN's key
/// over the same signing input, and a reset one of the PUK's key. An unlocking contains the code of
/// the help desk. The statement names the version that it makes, so a statement that somebody sends
/// again changes nothing.
public struct PINStatement: Sendable {
    public static let type = "twoefay-pin+jwt"
    public static let maxBytes = 4096

    public enum Change: String, Sendable, CaseIterable {
        /// Sets the first PIN and its PUK.
        case set
        /// Changes the PIN; the PUK stays.
        case change
        /// Sets a new PIN and a new PUK in the place of a forgotten or locked PIN.
        case reset
        /// Sets a new PIN and a new PUK with a code of the help desk.
        case unlock

        /// The number of claims.
        fileprivate var claims: Int {
            switch self {
            case .change: 6
            case .set, .reset: 7
            case .unlock: 8
            }
        }
    }

    public let change: Change
    public let version: Int
    /// The new public key of the PIN.
    public let key: P256PublicKey
    /// The new public key of the PUK; nil for a change.
    public let pukKey: P256PublicKey?
    /// The code that the help desk read out; nil for other changes.
    public let unlockCode: String?
    /// The bytes that the phone's key and the old PIN's or PUK's key sign.
    public let signingInput: [UInt8]

    /// Reads a statement. Returns nil if the phone has not signed it, or if a claim is wrong.
    public init?(_ compact: String, of device: DeviceID, key deviceKey: P256PublicKey, audience: String) {
        guard let object = try? JWS.parse(compact, maxBytes: Self.maxBytes), object.type == Self.type,
            object.keyID == device.text, object.header.count == 3, object.verify(deviceKey),
            let claims = (try? JSONReader.read(object.payload))?.object, claims["v"] == 1,
            claims["aud"]?.string.map({ $0.utf8.elementsEqual(audience.utf8) }) == true,
            let change = claims["change"]?.string.flatMap({ Change(rawValue: $0) }),
            let version = claims["version"]?.integer.flatMap({ Int32(exactly: $0) }), version > 0,
            claims["iat"]?.integer != nil, let key = Self.key(claims["pin"]),
            claims.count == change.claims
        else { return nil }
        pukKey = change == .change ? nil : Self.key(claims["puk"])
        guard (change == .change) == (pukKey == nil) else { return nil }
        // Whoever holds the phone could sign with its own key, and one key would be PIN and PUK.
        let keys = [deviceKey.x963, key.x963] + (pukKey.map { [$0.x963] } ?? [])
        guard Set(keys).count == keys.count else { return nil }
        unlockCode = change == .unlock ? claims["unlock_code"]?.string : nil
        guard (change == .unlock) == (unlockCode.map { UnlockCode.isCode($0) } == true) else { return nil }
        self.change = change
        self.version = Int(version)
        self.key = key
        signingInput = object.signingInput
    }

    private static func key(_ jwk: JSONValue?) -> P256PublicKey? { jwk.flatMap { try? P256PublicKey(jwk: $0) } }
}

/// The signature by the key of a PIN or PUK: r and s, 64 bytes, in base64url.
public enum PINSignature {
    /// Whether the signature over these bytes is right.
    ///
    /// - Parameter key: the public key, uncompressed.
    public static func isRight(_ signature: String, over bytes: [UInt8], key: [UInt8]) -> Bool {
        guard let signature = Base64URL.decode(signature), let key = try? P256PublicKey(x963: key) else { return false }
        return key.verify(signature: signature, over: bytes)
    }

    /// Returns the signing input of a compact JWS, which the PIN's key signs, too.
    public static func input(of compact: String) -> [UInt8] {
        let bytes = Array(compact.utf8)
        return Array(bytes.prefix(upTo: bytes.lastIndex(of: UInt8(ascii: ".")) ?? bytes.endIndex))
    }
}
