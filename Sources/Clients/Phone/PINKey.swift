import Bytes
import Crypto
import World

/// The secret from which the keys of a phone's PIN and PUK are derived.
///
/// A PIN is proved by a signature whose key comes from the PIN and from 256 random bits, which never
/// leave the phone. The phone stores these bits and nothing else: neither the key nor a digest of
/// it, so nothing on the phone shows whether a PIN is right. Only the relay has the public key and
/// notices a wrong one, and it counts. The public key without the bits is of no use, too.
public struct PINSecret: Sendable {
    /// The purpose of a derived key. The same digits give another key for each.
    public enum Purpose: String, Sendable, CaseIterable {
        case pin = "twoefay-pin"
        case puk = "twoefay-puk"
    }

    public static let digits = 4...12
    public static let pukDigits = 12

    let bytes: Secret

    public init(_ randomness: any Randomness = SystemRandomness()) { bytes = Secret(randomness.bytes(32)) }

    init?(_ bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        self.bytes = Secret(bytes)
    }

    /// Derives the key of a PIN or PUK: scrypt (N = 2^15, r = 8, p = 1) of the digits with the
    /// secret as the salt, then HKDF to 40 bytes, then the reduction to a scalar.
    ///
    /// It takes about a tenth of a second, so that somebody who has the phone and the relay's store
    /// needs that for each guess.
    public func key(of digits: String, for purpose: Purpose) throws(CryptoFailure) -> P256PrivateKey {
        guard let cost = PasswordHash.Cost(logarithmOfN: 15, r: 8, p: 1) else {
            throw CryptoFailure("invalid parameters for scrypt")
        }
        let stretched = try Scrypt.derive(from: Secret(utf8: digits), salt: bytes.reveal(), cost: cost, count: 32)
        let material = HKDF.sha256(
            stretched, salt: [], info: Array(purpose.rawValue.utf8), count: P256PrivateKey.bytesToReduce)
        return try P256PrivateKey(reducing: material)
    }

    /// Whether the text can be a PIN.
    public static func isPIN(_ text: String) -> Bool { digits.contains(text.utf8.count) && isDigits(text) }

    /// Whether the text can be a PUK.
    public static func isPUK(_ text: String) -> Bool { text.utf8.count == pukDigits && isDigits(text) }

    /// Whether the text can be an unlock code of the help desk.
    public static func isUnlockCode(_ text: String) -> Bool { text.utf8.count == 8 && isDigits(text) }

    private static func isDigits(_ text: String) -> Bool { text.utf8.allSatisfy { (0x30...0x39).contains($0) } }

    /// Returns a new PUK. The phone shows it once and does not store it.
    public static func newPUK(_ randomness: any Randomness = SystemRandomness()) -> String {
        var digits = ""
        while digits.utf8.count < pukDigits {
            // Ten digits are equally likely only among a multiple of ten values.
            for byte in randomness.bytes(16) where byte < 250 && digits.utf8.count < pukDigits {
                digits += String(byte % 10)
            }
        }
        return digits
    }
}
