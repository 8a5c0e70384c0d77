/// The text forms of a timestamp: RFC 3339 on the wire, DATETIME(3) in SQL. Both sort in the order
/// of time.
extension Timestamp {
    /// `2026-11-21T08:22:34.123Z`
    public var rfc3339: String { text(separator: UInt8(ascii: "T"), isZulu: true) }

    /// `2026-11-21 08:22:34.123`
    public var sql: String { text(separator: UInt8(ascii: " "), isZulu: false) }

    /// Parses the format of `sql`, also with fewer digits of the fraction.
    public init?(sql text: String) { self.init(parsing: text, separator: UInt8(ascii: " "), zulu: false) }

    /// Parses RFC 3339 in UTC (`Z`), with or without a fraction of a second.
    public init?(rfc3339 text: String) { self.init(parsing: text, separator: UInt8(ascii: "T"), zulu: true) }

    private func text(separator: UInt8, isZulu: Bool) -> String {
        let days = milliseconds.quotientRoundingDown(by: 86_400_000)
        let (year, month, day) = Self.civil(fromDays: days)
        let rest = milliseconds - days * 86_400_000
        // A peer may have chosen a year with more digits.
        let long = (0...9999).contains(year) ? "" : String(year)
        // A request makes several such texts, so they are written in place.
        return String(unsafeUninitializedCapacity: max(long.utf8.count, 4) + 20) { text in
            var at = 0
            func append(_ value: Int64, digits: Int) {
                var rest = UInt32(truncatingIfNeeded: value)
                var place = at + digits
                while place > at {
                    place -= 1
                    text[place] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                    rest /= 10
                }
                at += digits
            }
            func append(_ mark: UInt8, _ value: Int64, digits: Int) {
                text[at] = mark
                at += 1
                append(value, digits: digits)
            }
            if long.isEmpty { append(year, digits: 4) }
            for byte in long.utf8 {
                text[at] = byte
                at += 1
            }
            append(UInt8(ascii: "-"), month, digits: 2)
            append(UInt8(ascii: "-"), day, digits: 2)
            append(separator, rest / 3_600_000, digits: 2)
            append(UInt8(ascii: ":"), rest / 60_000 % 60, digits: 2)
            append(UInt8(ascii: ":"), rest / 1000 % 60, digits: 2)
            append(UInt8(ascii: "."), rest % 1000, digits: 3)
            if isZulu {
                text[at] = UInt8(ascii: "Z")
                at += 1
            }
            return at
        }
    }

    private init?(parsing text: String, separator: UInt8, zulu: Bool) {
        var text = text
        guard let parsed = text.withUTF8({ Self.milliseconds($0, separator: separator, zulu: zulu) }) else {
            return nil
        }
        milliseconds = parsed
    }

    private static func milliseconds(_ bytes: UnsafeBufferPointer<UInt8>, separator: UInt8, zulu: Bool) -> Int64? {
        guard bytes.count >= 19 else { return nil }
        func number(_ range: Range<Int>) -> Int64? {
            var value: Int64 = 0
            for byte in bytes[range] {
                guard (0x30...0x39).contains(byte) else { return nil }
                value = value * 10 + Int64(byte - 0x30)
            }
            return value
        }
        guard let year = number(0..<4), bytes[4] == UInt8(ascii: "-"), let month = number(5..<7),
            bytes[7] == UInt8(ascii: "-"), let day = number(8..<10), bytes[10] == separator,
            let hour = number(11..<13), bytes[13] == UInt8(ascii: ":"), let minute = number(14..<16),
            bytes[16] == UInt8(ascii: ":"), let second = number(17..<19),
            (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second < 61
        else { return nil }
        var end = 19
        var fraction: Int64 = 0
        if end < bytes.count, bytes[end] == UInt8(ascii: ".") {
            end += 1
            var scale: Int64 = 100
            let first = end
            while end < bytes.count, (0x30...0x39).contains(bytes[end]) {
                fraction += Int64(bytes[end] - 0x30) * scale
                scale /= 10
                end += 1
            }
            guard end > first else { return nil }
        }
        if zulu {
            guard end < bytes.count, bytes[end] == UInt8(ascii: "Z") else { return nil }
            end += 1
        }
        guard end == bytes.count else { return nil }
        let days = days(year: year, month: month, day: day)
        guard civil(fromDays: days) == (year, month, day) else { return nil }
        return ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + fraction
    }

    /// Howard Hinnant's `civil_from_days`: the proleptic Gregorian calendar in integers.
    private static func civil(fromDays days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = shifted.quotientRoundingDown(by: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }

    private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted.quotientRoundingDown(by: 400)
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}
