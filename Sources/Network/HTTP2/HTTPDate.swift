import World

/// The `date` of a response (RFC 9110 §5.6.7), made once a second.
struct HTTPDate {
    private var second: Int64 = .min
    private var text: [UInt8] = []

    mutating func text(at moment: Timestamp) -> [UInt8] {
        if moment.seconds != second {
            second = moment.seconds
            text = Array(moment.httpDate.utf8)
        }
        return text
    }
}
