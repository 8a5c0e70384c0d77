/// Values for the streams of one connection, by stream number. There are few streams, and most
/// lookups are for the newest; so a search from the end is faster than a hash table.
struct StreamTable<Value> {
    private var ids: [Int32] = []
    private(set) var values: [Value] = []

    var isEmpty: Bool { ids.isEmpty }
    var count: Int { ids.count }

    subscript(id: Int32) -> Value? { ids.lastIndex(of: id).map { values[$0] } }

    /// Adds a value for a new number.
    mutating func add(_ value: Value, _ id: Int32) {
        ids.append(id)
        values.append(value)
    }

    @discardableResult
    mutating func remove(_ id: Int32) -> Value? {
        guard let index = ids.lastIndex(of: id) else { return nil }
        // The last value takes the free place.
        ids[index] = ids[ids.count - 1]
        ids.removeLast()
        var value = values.removeLast()
        if index < values.count { swap(&values[index], &value) }
        return value
    }

    /// Removes and returns all values.
    mutating func removeAll() -> [Value] {
        defer { self = StreamTable() }
        return values
    }
}
