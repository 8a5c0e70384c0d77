/// A point in time, in milliseconds since 1970 (UTC).
public struct Timestamp: Sendable, Comparable, Hashable {
    public var milliseconds: Int64

    public init(milliseconds: Int64) { self.milliseconds = milliseconds }
    public init(seconds: Int64) { milliseconds = seconds * 1000 }

    public var seconds: Int64 { Int64((Double(milliseconds) / 1000).rounded(.down)) }

    public static func < (a: Timestamp, b: Timestamp) -> Bool { a.milliseconds < b.milliseconds }

    /// Reads `2026-11-21T10:04:30.120Z`, the form in which the relay writes times.
    public init?(rfc3339 text: String) {
        let parts = text.split(separator: "T", omittingEmptySubsequences: false)
        guard parts.count == 2, let end = parts[1].last, end == "Z" || end == "z" else { return nil }
        let time = parts[1].dropLast().split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        let fraction = time.count > 1 ? time[1] : "0"
        let (days, clock) = (parts[0].split(separator: "-"), time[0].split(separator: ":"))
        guard days.map(\.utf8.count) == [4, 2, 2], clock.map(\.utf8.count) == [2, 2, 2],
            (1...9).contains(fraction.utf8.count),
            let year = Int64(digits: days[0]), let month = Int64(digits: days[1]), let day = Int64(digits: days[2]),
            let hour = Int64(digits: clock[0]), let minute = Int64(digits: clock[1]),
            let second = Int64(digits: clock[2]),
            let parted = Int64(digits: (fraction + "000").prefix(3)), Int64(digits: fraction) != nil,
            (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second < 60
        else { return nil }
        milliseconds =
            ((Self.days(year, month, day) * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + parted
    }

    /// Reads the field `date` of an answer (RFC 9110): `Sat, 21 Nov 2026 10:04:30 GMT`.
    public init?(httpDate text: String) {
        let parts = text.split(separator: " ")
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        guard parts.count == 6, let month = months.firstIndex(of: String(parts[2])) else { return nil }
        self.init(rfc3339: "\(parts[3])-\(month < 9 ? "0" : "")\(month + 1)-\(parts[1])T\(parts[4])Z")
    }

    /// The days from 1970-01-01 to a date of the Gregorian calendar.
    package static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        // The year begins in March, so that the leap day is its last one.
        let years = month > 2 ? year : year - 1
        let (era, ofEra) = (years / 400, years % 400)
        let ofYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
    }
}

extension Int64 {
    /// Reads ASCII digits, and nothing else: no sign, no spaces.
    package init?(digits: some StringProtocol) {
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        self.init(digits)
    }
}
