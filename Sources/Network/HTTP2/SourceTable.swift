import EventLoop
import World

/// The source of a connection for the limits: an IPv4 address, or the /64 of an IPv6 address.
struct Source: Hashable, Sendable {
    private let isFour: Bool
    private let prefix: UInt64

    init(_ address: SocketAddress) {
        let bytes = address.unmapped.bytes
        isFour = bytes.count == 4
        prefix = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// The unidentified connections by source, oldest first, and the handshake budget of each source.
/// All operations are O(1), because they run for every connection of a flood. Tests:
/// `AdmissionTableTests`, `HandshakeBudgetTests`.
struct SourceTable {
    private struct Entry {
        var source: Source
        var count = 0
        /// Its connections, oldest first. A first request makes a connection the newest.
        var slots = IndexList()
        /// The time up to which its handshakes are paid for.
        var paidUntil: Instant
    }

    /// The number of sources that are remembered. A source without a connection is remembered for
    /// its handshake budget.
    private static let remembered = 65_536

    private var limits: AdmissionLimits
    private var entries: [Entry] = []
    private var free: [Int] = []
    private var indices: [Source: Int] = [:]
    private var slotLinks = IndexLinks()
    /// Lists of the sources with the same number of connections; the index is that number.
    private var levels: [IndexList]
    private var levelLinks = IndexLinks()
    /// All levels above it are empty.
    private var top = 0

    init(_ limits: AdmissionLimits) {
        self.limits = limits
        levels = Array(repeating: IndexList(), count: limits.perSource + 1)
    }

    /// Uses other limits from now on. A source may have more connections than a lower limit allows,
    /// so no level is removed.
    mutating func replace(_ limits: AdmissionLimits) {
        self.limits = limits
        let missing = limits.perSource + 1 - levels.count
        if missing > 0 { levels += Array(repeating: IndexList(), count: missing) }
    }

    func count(_ index: Int) -> Int { entries[index].count }
    func count(of source: Source) -> Int { indices[source].map { entries[$0].count } ?? 0 }
    func oldest(_ index: Int) -> Int { entries[index].slots.first }

    mutating func index(of source: Source, at now: Instant) -> Int {
        if let index = indices[source] { return index }
        if indices.count >= Self.remembered, !levels[0].isEmpty { forget(levels[0].first) }
        let entry = Entry(source: source, paidUntil: now)
        let index = free.popLast() ?? entries.count
        if index == entries.count { entries.append(entry) } else { entries[index] = entry }
        indices[source] = index
        levelLinks.append(index, to: &levels[0])
        return index
    }

    private mutating func forget(_ index: Int) {
        levelLinks.remove(index, from: &levels[0])
        indices[entries[index].source] = nil
        free.append(index)
    }

    mutating func add(_ slot: Int, to index: Int) {
        slotLinks.append(slot, to: &entries[index].slots)
        move(index, by: 1)
    }

    mutating func remove(_ slot: Int, from index: Int) {
        slotLinks.remove(slot, from: &entries[index].slots)
        move(index, by: -1)
    }

    /// Makes the connection the newest of its source.
    mutating func renew(_ slot: Int, of index: Int) {
        slotLinks.remove(slot, from: &entries[index].slots)
        slotLinks.append(slot, to: &entries[index].slots)
    }

    private mutating func move(_ index: Int, by change: Int) {
        levelLinks.remove(index, from: &levels[entries[index].count])
        entries[index].count += change
        levelLinks.append(index, to: &levels[entries[index].count])
        top = max(top, entries[index].count)
    }

    /// The oldest connection of the source with the most connections.
    mutating func oldestOfMostCrowded() -> Int? {
        while top > 0, levels[top].isEmpty { top -= 1 }
        guard top > 0 else { return nil }
        return entries[levels[top].first].slots.first
    }

    /// Takes one handshake from the budget of the source, or returns when the budget has one again.
    ///
    /// Each handshake costs a fixed time, and `paidUntil` moves forward by it. `paidUntil` may be
    /// ahead of the clock by the cost of `handshakesAtOnce` handshakes.
    mutating func takeHandshake(_ index: Int, at now: Instant) -> HandshakeDecision {
        let one = Duration.nanoseconds(1_000_000_000 / Int64(max(limits.handshakesPerSecond, 1)))
        let burst = one * limits.handshakesAtOnce
        let paid = max(entries[index].paidUntil, now) + one
        guard paid <= now + burst else { return .putOff(until: paid + (.zero - burst)) }
        entries[index].paidUntil = paid
        return .begin
    }
}
