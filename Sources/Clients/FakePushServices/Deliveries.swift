/// Counts of accepted pushes, by their `apns-id`.
public struct Deliveries: Sendable, Equatable {
    /// The number of accepted pushes, with repetitions.
    public internal(set) var accepted = 0
    /// The number of different ids.
    public internal(set) var ids = 0
    /// The ids that were accepted more than once: the phone would have shown two notifications.
    public internal(set) var twice: Set<String> = []
    /// The ids that were accepted at least once without an answer to the sender. A correct sender
    /// repeats only these, so every id of `twice` must be among them.
    public internal(set) var unanswered: Set<String> = []
}

/// Counts accepted pushes. Ids are stored in 16 bytes each, so 100,000 of them need a few
/// megabytes.
struct DeliveryCount {
    private struct ID: Hashable {
        let high: UInt64
        let low: UInt64

        /// Parses a UUID; nil if the text is none.
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

/// Limits on how many received pushes and requests the service keeps.
public struct RecordingLimits: Sendable {
    /// The number of pushes, and of requests, that are kept until `next` or `nextRequest` returns
    /// them. The oldest are dropped first.
    public var newest: Int
    /// Whether deliveries are counted.
    public var deliveries: Bool

    public init(newest: Int = .max, deliveries: Bool = true) {
        self.newest = newest
        self.deliveries = deliveries
    }

    public static let everything = RecordingLimits()
    /// Only counts, for tests with 100,000 pushes.
    public static let counts = RecordingLimits(newest: 0)
    public static let nothing = RecordingLimits(newest: 0, deliveries: false)
}
