/// The value of `retry-after` (RFC 9110 §10.2.3): seconds, or a date.
public enum RetryAfter {
    /// Parses the value. Returns nil if it is neither. A date in the past gives zero.
    public static func wait(_ text: String, at now: Timestamp) -> Duration? {
        if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            // Larger numbers are limited to more than a century.
            return .seconds(text.utf8.count < 10 ? Int64(text) ?? 0 : 4_000_000_000)
        }
        return date(text).map { max($0 - now, .zero) }
    }

    /// Parses `Sun, 06 Nov 1994 08:49:37 GMT`. The two obsolete forms are not supported.
    private static func date(_ text: String) -> Timestamp? {
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        guard parts.count == 6, parts[0].utf8.count == 4, parts[5] == "GMT", parts[1].utf8.count == 2,
            parts[3].utf8.count == 4, parts[4].utf8.count == 8, let month = months.firstIndex(of: String(parts[2]))
        else { return nil }
        let digits = month < 9 ? "0\(month + 1)" : "\(month + 1)"
        return Timestamp(rfc3339: "\(parts[3])-\(digits)-\(parts[1])T\(parts[4]).000Z")
    }
}
