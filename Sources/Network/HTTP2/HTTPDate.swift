import World

/// The `date` of a response (RFC 9110 §5.6.7), made once a second.
struct HTTPDate {
    private var second: Int64 = .min
    private var text: [UInt8] = []

    mutating func text(at moment: Timestamp) -> [UInt8] {
        if moment.seconds != second {
            second = moment.seconds
            text = Array(Self.format(moment).utf8)
        }
        return text
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`
    static func format(_ moment: Timestamp) -> String {
        let plain = moment.rfc3339
        let parts = plain.split { !$0.isNumber }
        guard parts.count >= 6, let month = Int(parts[1]) else { return "" }
        let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let day = moment.seconds >= 0 ? moment.seconds / 86_400 : (moment.seconds - 86_399) / 86_400
        let weekday = days[Int((day % 7 + 7) % 7)]
        return "\(weekday), \(parts[2]) \(months[month - 1]) \(parts[0]) \(parts[3]):\(parts[4]):\(parts[5]) GMT"
    }
}
