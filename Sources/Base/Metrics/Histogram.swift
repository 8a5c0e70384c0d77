import Synchronization

/// How often something took how long. Noting one is two atomic instructions, from any thread.
public final class Histogram: Sendable {
    /// What each bucket counts at most, in ascending order.
    private let bounds: [Duration]
    /// One more than bounds: the last counts what is beyond them all.
    private let buckets: [Counter]
    private let nanoseconds = Counter()

    init(upTo bounds: [Duration]) {
        precondition(bounds == bounds.sorted(), "the bounds of a histogram ascend")
        self.bounds = bounds
        buckets = (0...bounds.count).map { _ in Counter() }
    }

    public func observe(_ duration: Duration) {
        let index = bounds.firstIndex { duration <= $0 } ?? bounds.count
        buckets[index].add()
        let (seconds, attoseconds) = duration.components
        nanoseconds.add(UInt64(clamping: seconds * 1_000_000_000 + attoseconds / 1_000_000_000))
    }

    public var count: UInt64 { buckets.reduce(0) { $0 + $1.value } }

    /// Each bucket with all that is below it, as the format has it, in seconds. They fit together, also while something
    /// is noted.
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
