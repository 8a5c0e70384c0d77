import Bytes
import Crypto

/// A recovery code: 80 random bits on paper, valid once, for a user who has lost every other
/// factor. The store has only digests; so much entropy needs no slow hash.
public enum RecoveryCode {
    /// The number of codes that a user gets at a time.
    public static let count = 10
    static let bytes = 10
    /// The number of letters of a code, without dashes.
    public static let letters = 16

    /// Formats a code in four groups: `abcd-efgh-2345-ijkl`.
    public static func text(_ secret: [UInt8]) -> String {
        let letters = Array(Base32.encode(secret).lowercased())
        return stride(from: 0, to: letters.count, by: 4)
            .map { String(letters[$0..<min($0 + 4, letters.count)]) }.joined(separator: "-")
    }

    /// Returns the texts of the codes, which are shown once.
    public static func codes(_ secret: OperationSecret) -> [String] {
        (0..<count).map { text(secret.derive("recovery code \($0)", count: bytes)) }
    }

    /// Returns the position, from 1, of the code that the user types back.
    public static func checkedPosition(_ secret: OperationSecret) -> Int {
        let drawn = secret.derive("recovery check", count: 8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Int(drawn % UInt64(count)) + 1
    }

    /// Returns the digest that the store has, which depends on the user. Spaces, dashes and upper
    /// case are accepted. Returns nil if the text cannot be a recovery code.
    public static func digest(_ typed: String, user: UserID) -> [UInt8]? {
        // The limit is far above any plausible spacing.
        guard typed.utf8.count <= 64, !typed.utf8.contains(UInt8(ascii: "=")), let secret = Base32.decode(typed),
            secret.count == bytes
        else { return nil }
        return SHA256.hash(Array("twoefay recovery code".utf8) + user.bytes + secret)
    }
}
