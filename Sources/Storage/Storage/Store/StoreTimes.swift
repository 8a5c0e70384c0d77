import Metrics

/// The times of the store's operations, each from the call to the answer. They include the time in a
/// lane's queue and repetitions after conflicts, because the callers wait for these, too.
public struct StoreTimes: Sendable {
    private static let bounds: [Duration] = [
        .microseconds(200), .microseconds(500), .milliseconds(1), .milliseconds(2), .milliseconds(5),
        .milliseconds(10), .milliseconds(20), .milliseconds(50), .milliseconds(100), .milliseconds(200),
        .milliseconds(500), .seconds(1), .seconds(2), .seconds(5),
    ]

    let writes = Histogram(upTo: bounds)
    let reads = Histogram(upTo: bounds)

    func observe(_ script: Script, _ taken: Duration) { (script.isReadOnly ? reads : writes).observe(taken) }

    /// The histograms by the kind of the operation.
    public var all: [(word: String, histogram: Histogram)] { [("write", writes), ("read", reads)] }
}
