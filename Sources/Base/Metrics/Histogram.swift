import Synchronization

/// A histogram of durations. Recording one is two atomic instructions, and allowed on any thread.
public final class Histogram: Sendable {
    /// The upper bound of each bucket, in ascending order.
    private let bounds: [Duration]
    private let nanosecondBounds: [UInt64]
    /// The buckets, one more than bounds: the last one counts durations above all bounds.
    private let buckets: [Counter]
    private let nanoseconds = Counter()

    public init(upTo bounds: [Duration]) {
        precondition(bounds == bounds.sorted(), "the bounds of a histogram ascend")
        self.bounds = bounds
        nanosecondBounds = bounds.map(Self.nanoseconds)
        buckets = (0...bounds.count).map { _ in Counter() }
    }

    public func observe(_ duration: Duration) {
        let taken = Self.nanoseconds(duration)
        let index = nanosecondBounds.firstIndex { taken <= $0 } ?? bounds.count
        buckets[index].add()
        nanoseconds.add(taken)
    }

    /// Whole nanoseconds, since comparing durations takes several times as long.
    private static func nanoseconds(_ duration: Duration) -> UInt64 {
        UInt64(clamping: duration.attoseconds / 1_000_000_000)
    }

    public var count: UInt64 { buckets.reduce(0) { $0 + $1.value } }

    /// The buckets, each cumulative as the format requires, in seconds. They are consistent with
    /// each other, even if a duration is recorded meanwhile.
    var samples: [Registry.Sample] {
        var sum: UInt64 = 0
        var samples: [Registry.Sample] = []
        for (bucket, bound) in zip(buckets, bounds.map { "\(Self.seconds($0))" } + ["+Inf"]) {
            sum += bucket.value
            samples.append(Registry.Sample(suffix: "_bucket", upTo: bound, value: String(sum)))
        }
        let total = Double(nanoseconds.value) / 1_000_000_000
        samples.append(Registry.Sample(suffix: "_sum", value: "\(total)"))
        samples.append(Registry.Sample(suffix: "_count", value: String(sum)))
        return samples
    }

    static func seconds(_ duration: Duration) -> Double {
        let (seconds, attoseconds) = duration.components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}

/// A histogram for each of a fixed set of keys. All of them exist from the start.
public struct Histograms<Key: Hashable & Sendable>: Sendable {
    private let histograms: [Key: Histogram]

    init(_ histograms: [Key: Histogram]) { self.histograms = histograms }

    public func observe(_ key: Key, _ duration: Duration) {
        // The keys are all values of their type. If one is missing, only its count is wrong.
        assert(histograms[key] != nil, "no histogram for \(key)")
        histograms[key]?.observe(duration)
    }

    public subscript(key: Key) -> Histogram? { histograms[key] }
}
