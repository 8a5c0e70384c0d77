import Bytes
import Crypto
import World

/// A temporary code: 50 random bits that the help desk reads out to a user who has lost every
/// factor. It answers logins as the factor `operator`, with the lowest assurance.
///
/// A code has ten letters of an alphabet of 32 without I, L, O and U, in two groups. It expires, and
/// works once unless the help desk permits more uses. A user has one at a time.
///
/// Invariant: the store has a digest under a key that is not in the store. 50 bits are few enough to
/// try all of them against a plain digest within the life of a code, and nobody can do that without
/// the key.
///
/// Tests: `DomainTests/TemporaryCodeTests.swift`, `RelayTests/TemporaryCodeTests.swift`.
public enum TemporaryCode {
    /// The number of letters of a code, without the dash.
    public static let letters = 10
    /// The number of random bytes from which a code is made; six bits of them are not used.
    public static let bytes = 7
    /// The time for which a code may be valid.
    public static let lives = Duration.seconds(300)...Duration.seconds(86_400)
    /// The number of times that a code may be used.
    public static let uses = 1...5

    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)

    /// Formats random bytes as a code in two groups, such as `7K3MP-X2Q9R`.
    public static func text(_ random: [UInt8]) -> String {
        var rest = random.prefix(bytes).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let letters = (0..<letters).map { _ in
            defer { rest >>= 5 }
            return alphabet[Int(rest & 31)]
        }
        return String(decoding: letters[..<5], as: UTF8.self) + "-" + String(decoding: letters[5...], as: UTF8.self)
    }

    /// Returns the ten letters of a code as a person may have typed it: in small letters, with
    /// spaces or dashes, with O for 0, and with I or L for 1. Returns nil if it cannot be a code.
    public static func canonical(_ typed: String) -> [UInt8]? {
        // The limit is far above any plausible spacing.
        guard typed.utf8.count <= 64 else { return nil }
        var found: [UInt8] = []
        for byte in typed.utf8 where byte != UInt8(ascii: " ") && byte != UInt8(ascii: "-") {
            let upper = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) ? byte - 32 : byte
            let letter: UInt8 =
                switch upper {
                case UInt8(ascii: "O"): UInt8(ascii: "0")
                case UInt8(ascii: "I"), UInt8(ascii: "L"): UInt8(ascii: "1")
                default: upper
                }
            guard alphabet.contains(letter) else { return nil }
            found.append(letter)
        }
        return found.count == letters ? found : nil
    }

    /// Returns the digest that the store has, which depends on the user. Returns nil if the text
    /// cannot be a code.
    public static func digest(_ typed: String, user: UserID, _ sealer: Sealer) -> [UInt8]? {
        canonical(typed).map { sealer.digest(of: user.bytes + $0, associated: purpose) }
    }

    /// Returns the digests under every key of the master key file; none if the text cannot be a
    /// code.
    public static func digests(_ typed: String, user: UserID, _ sealer: Sealer) -> [[UInt8]] {
        canonical(typed).map { sealer.digests(of: user.bytes + $0, associated: purpose) } ?? []
    }

    private static let purpose = Array("twoefay temporary code".utf8)
}
