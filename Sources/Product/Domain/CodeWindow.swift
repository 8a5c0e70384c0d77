import Bytes
import World

/// Which codes of a factor are taken. All of them are looked at, whichever is right: how close a guess was shows in no
/// time that it takes.
public enum CodeWindow {
    /// Steps either side of the relay's clock that a TOTP device's may be off by.
    public static let drift: Int64 = 1
    /// Codes that an HOTP token may have shown to nobody.
    public static let lookAhead: Int64 = 10

    /// Whether that can be a code of any kind: so many digits and nothing else, or a recovery code.
    public static func isCode(_ typed: String) -> Bool {
        OTP.digits.contains { OTP.isCode(typed, digits: $0) }
            || anybody.map { RecoveryCode.digest(typed, user: $0) != nil } == true
    }

    private static let anybody = UserID([UInt8](repeating: 0, count: 16))

    /// Of totp: later than the last one that was accepted.
    public static func steps(after accepted: Int64, period: Int, at now: Timestamp) -> [Int64] {
        let step = OTP.step(at: now, period: period)
        return ((step - drift)...(step + drift)).filter { $0 > accepted && $0 >= 0 }
    }

    /// Of hotp, from the one that is expected. A token that has come to the end of all counters shows none that is taken.
    public static func counters(from expected: Int64) -> [Int64] {
        guard expected < Int64.max - lookAhead else { return [] }
        return Array(max(0, expected)..<(max(0, expected) + lookAhead))
    }

    /// The first of the counters whose code that is.
    public static func match(
        _ typed: String, in counters: [Int64], secret: Secret, algorithm: OTPAlgorithm, digits: Int
    ) -> Int64? {
        var found: Int64?
        for counter in counters {
            let isRight = OTP.matches(
                typed, secret: secret, counter: UInt64(max(0, counter)), algorithm: algorithm, digits: digits)
            if isRight, found == nil { found = counter }
        }
        return found
    }
}
