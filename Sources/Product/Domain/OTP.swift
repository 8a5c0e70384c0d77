import Bytes
import Crypto
import World

/// The one-time codes HOTP (RFC 4226) and TOTP (RFC 6238), which is HOTP with the time as its
/// counter.
public enum OTP {
    /// The permitted numbers of digits.
    public static let digits = 6...8

    /// Returns the code with leading zeros.
    public static func code(secret: Secret, counter: UInt64, algorithm: OTPAlgorithm, digits: Int) -> String {
        precondition(Self.digits.contains(digits), "no code has \(digits) digits")
        let message = (0..<8).map { UInt8(truncatingIfNeeded: counter >> UInt64(56 - 8 * $0)) }
        let digest =
            switch algorithm {
            case .sha1: HMAC.sha1(key: secret, message)
            case .sha256: HMAC.sha256(key: secret, message)
            case .sha512: HMAC.sha512(key: secret, message)
            }
        // RFC 4226 §5.3: the last four bits of the digest are the offset of the number.
        let start = Int(digest[digest.count - 1] & 15)
        let number = digest[start..<(start + 4)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7fff_ffff
        let bound = (0..<digits).reduce(UInt32(1)) { bound, _ in bound * 10 }
        let plain = String(number % bound)
        return String(repeating: "0", count: digits - plain.utf8.count) + plain
    }

    /// Returns whether the text is the code. The comparison takes the same time for every text.
    public static func matches(
        _ typed: String, secret: Secret, counter: UInt64, algorithm: OTPAlgorithm, digits: Int
    ) -> Bool {
        let code = code(secret: secret, counter: counter, algorithm: algorithm, digits: digits)
        return Secret.matches(Array(typed.utf8), Array(code.utf8))
    }

    /// Returns the TOTP counter at that time. Times before 1970 give the first counter.
    public static func step(at moment: Timestamp, period: Int) -> Int64 {
        max(0, moment.seconds) / Int64(max(1, period))
    }

    /// Returns whether the text can be a code with that number of digits.
    public static func isCode(_ text: String, digits: Int) -> Bool {
        text.utf8.count == digits && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }
}
