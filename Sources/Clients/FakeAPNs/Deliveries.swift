/// How often each push was accepted, by its `apns-id`.
public struct Deliveries: Sendable, Equatable {
    /// All together, with those that came more than once.
    public internal(set) var accepted = 0
    /// Different ones.
    public internal(set) var ids = 0
    /// Accepted more than once: the phone would have rung twice.
    public internal(set) var twice: Set<String> = []
    /// Accepted at least once without its sender being told. Nothing else may stand among `twice`.
    public internal(set) var unanswered: Set<String> = []
}

/// The count behind it: a hundred thousand of them are a few megabytes.
struct DeliveryCount {
    private struct ID: Hashable {
        let high: UInt64
        let low: UInt64

        /// Nil unless it is a UUID.
        init?(_ text: String) {
            var (high, low, digits): (UInt64, UInt64, Int) = (0, 0, 0)
            for byte in text.utf8 where byte != UInt8(ascii: "-") {
                let digit: UInt8
                switch byte {
                case 0x30...0x39: digit = byte - 0x30
                case 0x61...0x66: digit = byte - 0x57
                default: return nil
                }
                if digits < 16 { high = high << 4 | UInt64(digit) } else { low = low << 4 | UInt64(digit) }
                digits += 1
            }
            guard digits == 32 else { return nil }
            self.high = high
            self.low = low
        }

        var text: String {
            let digits = [high, low].map { part in
                let digits = String(part, radix: 16)
                return String(repeating: "0", count: 16 - digits.utf8.count) + digits
            }.joined()
            var rest = Substring(digits)
            return [8, 4, 4, 4, 12].map { count in
                defer { rest = rest.dropFirst(count) }
                return rest.prefix(count)
            }.joined(separator: "-")
        }
    }

    private var counts: [ID: UInt32] = [:]
    private var unanswered: Set<ID> = []

    mutating func add(_ id: String, isAnswered: Bool) {
        guard let id = ID(id) else { return }
        counts[id, default: 0] += 1
        if !isAnswered { unanswered.insert(id) }
    }

    var result: Deliveries {
        var result = Deliveries()
        result.ids = counts.count
        for (id, count) in counts {
            result.accepted += Int(count)
            if count > 1 { result.twice.insert(id.text) }
        }
        result.unanswered = Set(unanswered.map(\.text))
        return result
    }
}

/// How much of what came is kept for whoever asks.
public struct RecordingLimits: Sendable {
    /// Of each kind, the newest that have not been asked for: what `next` and `nextRequest` hand out.
    public var newest: Int
    /// Whether `deliveries` are counted.
    public var deliveries: Bool

    public init(newest: Int = .max, deliveries: Bool = true) {
        self.newest = newest
        self.deliveries = deliveries
    }

    public static let everything = RecordingLimits()
    /// For a hundred thousand pushes.
    public static let counts = RecordingLimits(newest: 0)
    public static let nothing = RecordingLimits(newest: 0, deliveries: false)
}
