/// Values for the streams of one connection, by stream number. There are few streams, and most
/// lookups are for the newest; so a search from the end is faster than a hash table.
struct StreamTable<Value> {
    private struct Entry {
        let id: Int32
        let value: Value
    }

    private var entries: [Entry] = []

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }
    var values: some Sequence<Value> { entries.lazy.map(\.value) }

    subscript(id: Int32) -> Value? { entries.last { $0.id == id }?.value }

    /// Adds a value for a new number.
    mutating func add(_ value: Value, _ id: Int32) { entries.append(Entry(id: id, value: value)) }

    @discardableResult
    mutating func remove(_ id: Int32) -> Value? {
        guard let index = entries.lastIndex(where: { $0.id == id }) else { return nil }
        // The last entry takes the free place.
        var entry = entries.removeLast()
        if index < entries.count { swap(&entries[index], &entry) }
        return entry.value
    }

    /// Removes and returns all values.
    mutating func removeAll() -> [Value] {
        defer { self = StreamTable() }
        return entries.map(\.value)
    }
}
