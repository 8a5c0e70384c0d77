import Synchronization

/// Everything that is measured, under the name it has outside. What is measured is declared at the start, with labels
/// whose values are few and known then: what a peer chose is never among them.
public final class Registry: Sendable {
    /// What is measured under one name.
    public struct Family: Sendable {
        public enum Kind: String, Sendable {
            case counter, gauge, histogram
        }

        public let name: String
        public let kind: Kind
        /// In a sentence, for people.
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
        /// One for each label.
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

    /// One number of a series, which has several where it is a histogram.
    struct Sample: Sendable {
        /// Behind the name of the family.
        var suffix = ""
        /// Of a histogram's bucket: the greatest that it counts.
        var upTo: String?
        let value: String
    }

    private let declared = Mutex<[Family]>([])

    public init() {}

    /// In the order in which they were declared.
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

// MARK: Declaring

extension Registry {
    public func counter(_ name: String, _ about: String) -> Counter {
        let counter = Counter()
        declare(name, .counter, about, [Series(values: []) { String(counter.value) }])
        return counter
    }

    /// A count that somebody else keeps, looked at when somebody asks, from any thread.
    public func counter(_ name: String, _ about: String, read: @escaping @Sendable () -> UInt64) {
        declare(name, .counter, about, [Series(values: []) { String(read()) }])
    }

    /// Counts that somebody else keeps, one for each of some words, looked at when somebody asks.
    public func counters(
        _ name: String, _ about: String, by label: String, _ words: [String],
        read: @escaping @Sendable (String) -> UInt64
    ) {
        declare(
            name, .counter, about, labels: [label], words.map { word in Series(values: [word]) { String(read(word)) } })
    }

    /// - Parameter values: of the labels, for a key.
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

    /// Counters for keys that become known later. They are words of the operator's, and few.
    public func growingCounters<Key>(
        _ name: String, _ about: String, by labels: [String], values: @escaping @Sendable (Key) -> [String]
    ) -> GrowingCounters<Key> {
        let counters = GrowingCounters<Key>()
        declare(name, .counter, about, labels: labels) {
            counters.all.map { key, counter in Series(values: values(key)) { String(counter.value) } }
        }
        return counters
    }

    /// A counter for each word of an enumeration.
    public func counters<Key: RawRepresentable<String> & CaseIterable>(
        _ name: String, _ about: String, by label: String, _ words: Key.Type = Key.self
    ) -> Counters<Key> {
        counters(name, about, by: [label], Array(Key.allCases)) { [$0.rawValue] }
    }

    /// Counts for each word of an enumeration that somebody else keeps, read when somebody asks, from any thread.
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

    /// A level that is looked at when somebody asks, from any thread.
    public func gauge(_ name: String, _ about: String, read: @escaping @Sendable () -> Int64) {
        declare(name, .gauge, about, [Series(values: []) { String(read()) }])
    }

    /// A level for each of some words, looked at when somebody asks; nil where there is nothing to say now.
    public func gauges(
        _ name: String, _ about: String, by label: String, _ words: [String],
        read: @escaping @Sendable (String) -> Int64?
    ) {
        let series = words.map { word in
            Series(values: [word], samples: { read(word).map { [Sample(value: String($0))] } ?? [] })
        }
        declare(name, .gauge, about, labels: [label], series)
    }

    /// How long something has lasted, in seconds, looked at when somebody asks; nil where there is no such thing now.
    public func duration(_ name: String, _ about: String, read: @escaping @Sendable () -> Duration?) {
        let series = Series(values: [], samples: { read().map { [Sample(value: "\(Histogram.seconds($0))")] } ?? [] })
        declare(name, .gauge, about, [series])
    }

    /// How long something took.
    public func histogram(_ name: String, _ about: String, upTo bounds: [Duration]) -> Histogram {
        let histogram = Histogram(upTo: bounds)
        declare(name, .histogram, about, [Series(values: [], samples: { histogram.samples })])
        return histogram
    }

    /// What does not change as long as the process lives.
    public func constant(_ name: String, _ about: String, labels: [(name: String, value: String)] = [], _ value: Double)
    {
        declare(name, .gauge, about, labels: labels.map(\.name), [Series(values: labels.map(\.value)) { "\(value)" }])
    }
}
