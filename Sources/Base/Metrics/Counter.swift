import Synchronization

/// A number that only grows. Adding to it is one atomic instruction, and allowed on any thread.
public final class Counter: Sendable {
    private let total = Atomic<UInt64>(0)

    public init() {}

    public func add(_ amount: UInt64 = 1) { total.wrappingAdd(amount, ordering: .relaxed) }

    public var value: UInt64 { total.load(ordering: .relaxed) }
}

/// A number that goes up and down.
public final class Gauge: Sendable {
    private let level = Atomic<Int64>(0)

    public init() {}

    public func add(_ amount: Int64 = 1) { level.wrappingAdd(amount, ordering: .relaxed) }
    public func subtract(_ amount: Int64 = 1) { level.wrappingSubtract(amount, ordering: .relaxed) }

    public var value: Int64 { level.load(ordering: .relaxed) }
}

/// A counter for each of a fixed set of keys. All of them exist from the start, with the value
/// zero. A series that first appears with its first event would hide that event when rates are
/// computed.
public struct Counters<Key: Hashable & Sendable>: Sendable {
    private let counters: [Key: Counter]

    init(_ counters: [Key: Counter]) { self.counters = counters }

    public func add(_ key: Key, _ amount: UInt64 = 1) {
        // The keys are all values of their type. If one is missing, only its count is wrong.
        assert(counters[key] != nil, "no counter for \(key)")
        counters[key]?.add(amount)
    }

    public subscript(key: Key) -> UInt64 { counters[key]?.value ?? 0 }

    public var total: UInt64 { counters.values.reduce(0) { $0 + $1.value } }
}

/// A counter for each key that has become known. It starts at zero and is never removed.
public final class GrowingCounters<Key: Hashable & Sendable>: Sendable {
    private let known = Mutex<(order: [Key], counters: [Key: Counter])>(([], [:]))

    init() {}

    public func know(_ keys: [Key]) {
        known.withLock { known in
            for key in keys where known.counters[key] == nil {
                known.order.append(key)
                known.counters[key] = Counter()
            }
        }
    }

    public func add(_ key: Key, _ amount: UInt64 = 1) { known.withLock { $0.counters[key] }?.add(amount) }

    var all: [(Key, Counter)] {
        known.withLock { known in known.order.compactMap { key in known.counters[key].map { (key, $0) } } }
    }
}
