extension Timestamp {
    /// The text of a date in HTTP (RFC 9110 §5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
    public var httpDate: String {
        let parts = rfc3339.split { !$0.isNumber }
        guard parts.count >= 6, let month = Int(parts[1]) else { return "" }
        let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let day = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
        let weekday = days[Int((day % 7 + 7) % 7)]
        return "\(weekday), \(parts[2]) \(months[month - 1]) \(parts[0]) \(parts[3]):\(parts[4]):\(parts[5]) GMT"
    }
}
