import Bytes
import World

/// The window of codes that a factor accepts. All codes in the window are compared, whichever is
/// right, so that the duration does not reveal how close a guess was.
public enum CodeWindow {
    /// The number of time steps by which a TOTP device's clock may differ, in either direction.
    public static let drift: Int64 = 1
    /// The number of codes that an HOTP token may be ahead, because codes were shown but not used.
    public static let lookAhead: Int64 = 10

    /// Returns whether the text can be a code of any kind: 6 to 8 digits, a recovery code, or a
    /// temporary code.
    public static func isCode(_ typed: String) -> Bool {
        OTP.digits.contains { OTP.isCode(typed, digits: $0) }
            || anybody.map { RecoveryCode.digest(typed, user: $0) != nil } == true
            || TemporaryCode.canonical(typed) != nil
    }

    private static let anybody = UserID([UInt8](repeating: 0, count: 16))

    /// Returns the accepted time steps of TOTP, all later than the last accepted one.
    public static func steps(after accepted: Int64, period: Int, at now: Timestamp) -> [Int64] {
        let step = OTP.step(at: now, period: period)
        return ((step - drift)...(step + drift)).filter { $0 > accepted && $0 >= 0 }
    }

    /// Returns the accepted counters of HOTP, from the expected one. At the end of the counter
    /// range none is accepted.
    public static func counters(from expected: Int64) -> [Int64] {
        guard expected < Int64.max - lookAhead else { return [] }
        return Array(max(0, expected)..<(max(0, expected) + lookAhead))
    }

    /// Returns the first counter whose code matches, or nil.
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
