/// What belongs to the streams of one connection, by their number. There are few, and mostly one asks for the newest: a
/// search from the end beats a hash.
struct StreamTable<Value> {
    private var ids: [Int32] = []
    private(set) var values: [Value] = []

    var isEmpty: Bool { ids.isEmpty }
    var count: Int { ids.count }

    subscript(id: Int32) -> Value? { ids.lastIndex(of: id).map { values[$0] } }

    /// `id` must be new.
    mutating func add(_ value: Value, _ id: Int32) {
        ids.append(id)
        values.append(value)
    }

    @discardableResult
    mutating func remove(_ id: Int32) -> Value? {
        guard let index = ids.lastIndex(of: id) else { return nil }
        // The last one takes the place.
        ids[index] = ids[ids.count - 1]
        ids.removeLast()
        var value = values.removeLast()
        if index < values.count { swap(&values[index], &value) }
        return value
    }

    /// Everything, which is then no longer here.
    mutating func removeAll() -> [Value] {
        defer { self = StreamTable() }
        return values
    }
}
