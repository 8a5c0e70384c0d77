import Synchronization

/// All metrics of a program, under their external names. Metrics are declared at the start, with
/// labels whose values are few and known then. A value that a peer chose is never a label.
public final class Registry: Sendable {
    /// The series with one name.
    public struct Family: Sendable {
        public enum Kind: String, Sendable {
            case counter, gauge, histogram
        }

        public let name: String
        public let kind: Kind
        /// The help text, one sentence.
        public let about: String
        /// The names of its labels.
        public let labels: [String]
        private let now: @Sendable () -> [Series]

        var series: [Series] { now() }

        init(
            name: String, kind: Kind, about: String, labels: [String], series: @escaping @Sendable () -> [Series]
        ) {
            (self.name, self.kind, self.about, self.labels) = (name, kind, about, labels)
            now = series
        }
    }

    struct Series: Sendable {
        /// The values of the labels, in their order.
        let values: [String]
        let read: @Sendable () -> [Sample]

        init(values: [String], read: @escaping @Sendable () -> String) {
            self.init(values: values, samples: { [Sample(value: read())] })
        }

        init(values: [String], samples: @escaping @Sendable () -> [Sample]) {
            self.values = values
            read = samples
        }
    }

    /// A number of a series. A histogram has several.
    struct Sample: Sendable {
        /// The suffix after the name of the family.
        var suffix = ""
        /// The upper bound of a histogram's bucket; nil for other samples.
        var upTo: String?
        let value: String
    }

    private let declared = Mutex<[Family]>([])

    public init() {}

    /// The families in the order of their declaration.
    public var families: [Family] { declared.withLock { $0 } }

    private func declare(
        _ name: String, _ kind: Family.Kind, _ about: String, labels: [String] = [], _ series: [Series]
    ) {
        precondition(series.allSatisfy { $0.values.count == labels.count }, "\(name): a label without a value")
        declare(name, kind, about, labels: labels) { series }
    }

    private func declare(
        _ name: String, _ kind: Family.Kind, _ about: String, labels: [String],
        series: @escaping @Sendable () -> [Series]
    ) {
        precondition(Self.isName(name) && labels.allSatisfy(Self.isName), "\(name) \(labels): not names of metrics")
        declared.withLock { families in
            precondition(!families.contains { $0.name == name }, "\(name) is declared twice")
            families.append(Family(name: name, kind: kind, about: about, labels: labels, series: series))
        }
    }

    private static func isName(_ name: String) -> Bool {
        name.utf8.first.map { !(0x30...0x39).contains($0) } == true
            && name.utf8.allSatisfy { byte in
                (0x61...0x7a).contains(byte | 0x20) || (0x30...0x39).contains(byte) || byte == UInt8(ascii: "_")
            }
    }
}

// MARK: Declarations

extension Registry {
    public func counter(_ name: String, _ about: String) -> Counter {
        let counter = Counter()
        declare(name, .counter, about, [Series(values: []) { String(counter.value) }])
        return counter
    }

    /// Declares a counter whose value is kept elsewhere. `read` is called for each scrape, on any
    /// thread.
    public func counter(_ name: String, _ about: String, read: @escaping @Sendable () -> UInt64) {
        declare(name, .counter, about, [Series(values: []) { String(read()) }])
    }

    /// Declares a counter of seconds, whose value is kept elsewhere. `read` is called for each
    /// scrape, on any thread.
    public func secondsCounter(_ name: String, _ about: String, read: @escaping @Sendable () -> Duration) {
        declare(name, .counter, about, [Series(values: []) { "\(Histogram.seconds(read()))" }])
    }

    /// Declares a counter for each of some label values, with the counts kept elsewhere. `read` is
    /// called for each scrape, on any thread.
    public func counters(
        _ name: String, _ about: String, by label: String, _ words: [String],
        read: @escaping @Sendable (String) -> UInt64
    ) {
        declare(
            name, .counter, about, labels: [label], words.map { word in Series(values: [word]) { String(read(word)) } })
    }

    /// Declares a counter for each key.
    /// - Parameter values: returns the label values of a key.
    public func counters<Key>(
        _ name: String, _ about: String, by labels: [String], _ keys: [Key], values: (Key) -> [String]
    ) -> Counters<Key> {
        var counters: [Key: Counter] = [:]
        var series: [Series] = []
        for key in keys where counters[key] == nil {
            let counter = Counter()
            counters[key] = counter
            series.append(Series(values: values(key)) { String(counter.value) })
        }
        declare(name, .counter, about, labels: labels, series)
        return Counters(counters)
    }

    /// Declares counters for keys that become known later. They must be few, and chosen by the
    /// operator.
    public func growingCounters<Key>(
        _ name: String, _ about: String, by labels: [String], values: @escaping @Sendable (Key) -> [String]
    ) -> GrowingCounters<Key> {
        let counters = GrowingCounters<Key>()
        declare(name, .counter, about, labels: labels) {
            counters.all.map { key, counter in Series(values: values(key)) { String(counter.value) } }
        }
        return counters
    }

    /// Declares a counter for each case of an enumeration.
    public func counters<Key: RawRepresentable<String> & CaseIterable>(
        _ name: String, _ about: String, by label: String, _ words: Key.Type = Key.self
    ) -> Counters<Key> {
        counters(name, about, by: [label], Array(Key.allCases)) { [$0.rawValue] }
    }

    /// Declares a counter for each case of an enumeration, with the counts kept elsewhere. `read`
    /// is called for each scrape, on any thread.
    public func counters<Key: RawRepresentable<String> & CaseIterable & Sendable>(
        _ name: String, _ about: String, by label: String, _ words: Key.Type = Key.self,
        read: @escaping @Sendable (Key) -> UInt64
    ) {
        let series = Key.allCases.map { key in Series(values: [key.rawValue]) { String(read(key)) } }
        declare(name, .counter, about, labels: [label], series)
    }

    public func gauge(_ name: String, _ about: String) -> Gauge {
        let gauge = Gauge()
        self.gauge(name, about) { gauge.value }
        return gauge
    }

    /// Declares a gauge. `read` is called for each scrape, on any thread.
    public func gauge(_ name: String, _ about: String, read: @escaping @Sendable () -> Int64) {
        declare(name, .gauge, about, [Series(values: []) { String(read()) }])
    }

    /// Declares a gauge for each of some label values. `read` is called for each scrape; if it
    /// returns nil, the series is omitted.
    public func gauges(
        _ name: String, _ about: String, by label: String, _ words: [String],
        read: @escaping @Sendable (String) -> Int64?
    ) {
        let series = words.map { word in
            Series(values: [word], samples: { read(word).map { [Sample(value: String($0))] } ?? [] })
        }
        declare(name, .gauge, about, labels: [label], series)
    }

    /// Declares a gauge for label values that change while the process runs. They must be few, and
    /// chosen by the operator. `read` is called for each scrape, on any thread.
    public func growingGauges(
        _ name: String, _ about: String, by label: String, read: @escaping @Sendable () -> [String: Int64]
    ) {
        declare(name, .gauge, about, labels: [label]) {
            read().sorted { $0.key < $1.key }.map { word, value in Series(values: [word]) { String(value) } }
        }
    }

    /// Declares a gauge of a duration in seconds. `read` is called for each scrape; if it returns
    /// nil, the series is omitted.
    public func duration(_ name: String, _ about: String, read: @escaping @Sendable () -> Duration?) {
        let series = Series(values: [], samples: { read().map { [Sample(value: "\(Histogram.seconds($0))")] } ?? [] })
        declare(name, .gauge, about, [series])
    }

    /// Declares a histogram of durations.
    public func histogram(_ name: String, _ about: String, upTo bounds: [Duration]) -> Histogram {
        let histogram = Histogram(upTo: bounds)
        declare(name, .histogram, about, [Series(values: [], samples: { histogram.samples })])
        return histogram
    }

    /// Declares a histogram of durations for each key.
    /// - Parameter values: returns the label values of a key.
    public func histograms<Key>(
        _ name: String, _ about: String, by labels: [String], _ keys: [Key], upTo bounds: [Duration],
        values: (Key) -> [String]
    ) -> Histograms<Key> {
        var histograms: [Key: Histogram] = [:]
        var series: [Series] = []
        for key in keys where histograms[key] == nil {
            let histogram = Histogram(upTo: bounds)
            histograms[key] = histogram
            series.append(Series(values: values(key), samples: { histogram.samples }))
        }
        declare(name, .histogram, about, labels: labels, series)
        return Histograms(histograms)
    }

    /// Declares histograms that are kept elsewhere, one for each value of a label.
    public func histograms(
        _ name: String, _ about: String, by label: String, _ histograms: [(word: String, histogram: Histogram)]
    ) {
        declare(
            name, .histogram, about, labels: [label],
            histograms.map { word, histogram in Series(values: [word], samples: { histogram.samples }) })
    }

    /// Declares a gauge whose value never changes while the process lives.
    public func constant(_ name: String, _ about: String, labels: [(name: String, value: String)] = [], _ value: Double)
    {
        declare(name, .gauge, about, labels: labels.map(\.name), [Series(values: labels.map(\.value)) { "\(value)" }])
    }
}
