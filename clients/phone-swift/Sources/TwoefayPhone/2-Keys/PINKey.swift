/// The secret from which the keys of a phone's PIN and PUK are derived: 256 random bits.
///
/// The phone stores these bits, and nothing by which a PIN can be tested. Only the relay, which has
/// the public key, notices a wrong PIN, and it counts.
public struct PINSecret: Sendable, Equatable {
    public enum Purpose: String, Sendable {
        case pin = "twoefay-pin"
        case puk = "twoefay-puk"
    }

    let bytes: [UInt8]

    public init?(_ bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        self.bytes = bytes
    }

    /// Derives the key of a PIN or PUK. It takes some tenths of a second, and 32 MiB.
    public func key(
        of digits: String, for purpose: Purpose, _ cryptography: any Cryptography
    ) throws -> any SigningKey {
        let stretched = KeyDerivation.scrypt(
            Array(digits.utf8), salt: bytes, n: 32768, r: 8, p: 1, count: 32, cryptography)
        let number = KeyDerivation.hkdf(stretched, info: Array(purpose.rawValue.utf8), count: 40, cryptography)
        return try cryptography.signingKey(scalar: Self.scalar(number))
    }

    /// n - 1, where n is the order of P-256.
    private static let orderLessOne: [UInt8] = [
        0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x50,
    ]

    /// Returns (c mod (n - 1)) + 1 for a number c, the highest byte first (FIPS 186-5, A.2.1).
    package static func scalar(_ number: [UInt8]) -> [UInt8] {
        // One byte more than n: the rest is doubled before it is reduced.
        let order = [0] + orderLessOne
        var rest = [UInt8](repeating: 0, count: order.count)
        for byte in number {
            for bit in (0..<8).reversed() {
                var carry = byte >> UInt8(bit) & 1
                for at in rest.indices.reversed() {
                    let sum = UInt16(rest[at]) << 1 | UInt16(carry)
                    rest[at] = UInt8(truncatingIfNeeded: sum)
                    carry = UInt8(sum >> 8)
                }
                if !rest.lexicographicallyPrecedes(order) { subtract(order, from: &rest) }
            }
        }
        var at = rest.count - 1
        rest[at] &+= 1
        while rest[at] == 0 {
            at -= 1
            rest[at] &+= 1
        }
        return Array(rest.dropFirst())
    }

    private static func subtract(_ other: [UInt8], from number: inout [UInt8]) {
        var borrow: Int16 = 0
        for at in number.indices.reversed() {
            let difference = Int16(number[at]) - Int16(other[at]) - borrow
            number[at] = UInt8(truncatingIfNeeded: difference)
            borrow = difference < 0 ? 1 : 0
        }
    }

    /// Whether the text can be a PIN. What cannot be one is not sent: each wrong PIN costs a try.
    public static func isPIN(_ text: String) -> Bool { isDigits(text, 4...12) }
    public static func isPUK(_ text: String) -> Bool { isDigits(text, 12...12) }
    public static func isUnlockCode(_ text: String) -> Bool { isDigits(text, 8...8) }

    private static func isDigits(_ text: String, _ count: ClosedRange<Int>) -> Bool {
        count.contains(text.utf8.count) && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    /// Makes a PUK. The app shows it once, and does not store it.
    static func newPUK(_ cryptography: any Cryptography) -> String {
        var digits = ""
        while digits.utf8.count < 12 {
            // Ten digits are equally likely only among a multiple of ten values.
            for byte in cryptography.random(16) where byte < 250 && digits.utf8.count < 12 {
                digits += String(byte % 10)
            }
        }
        return digits
    }
}
