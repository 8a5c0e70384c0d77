import Bytes
import Crypto

/// A code that a user keeps on paper for the day on which there is nothing else: 80 bits, each good for one time. The
/// store gets digests alone; so much chance needs no slow hash.
public enum RecoveryCode {
    /// How many a user gets at once.
    public static let count = 10
    static let bytes = 10
    /// Of one code, without its dashes.
    public static let letters = 16

    /// As it is shown, in four groups: `abcd-efgh-2345-ijkl`.
    public static func text(_ secret: [UInt8]) -> String {
        let letters = Array(Base32.encode(secret).lowercased())
        return stride(from: 0, to: letters.count, by: 4)
            .map { String(letters[$0..<min($0 + 4, letters.count)]) }.joined(separator: "-")
    }

    /// The texts that are shown once.
    public static func codes(_ secret: OperationSecret) -> [String] {
        (0..<count).map { text(secret.derive("recovery code \($0)", count: bytes)) }
    }

    /// What the store knows it by: of that user's alone. Spaces, dashes and capitals are forgiven; nil for what can be
    /// none.
    public static func digest(_ typed: String, user: UserID) -> [UInt8]? {
        // Longer than anybody would space it out.
        guard typed.utf8.count <= 64, !typed.utf8.contains(UInt8(ascii: "=")), let secret = Base32.decode(typed),
            secret.count == bytes
        else { return nil }
        return SHA256.hash(Array("twoefay recovery code".utf8) + user.bytes + secret)
    }
}
