/// A doubly linked list of indices into an array of the owner. The links are kept in `IndexLinks`,
/// so appending, removing and taking the first are O(1) and allocate nothing.
struct IndexList {
    fileprivate(set) var first = -1
    fileprivate var last = -1

    var isEmpty: Bool { first < 0 }
}

/// The links of all lists of one kind. An index is in at most one list of that kind.
struct IndexLinks {
    private var previous: [Int] = []
    private var next: [Int] = []

    mutating func append(_ index: Int, to list: inout IndexList) {
        while next.count <= index {
            next.append(-1)
            previous.append(-1)
        }
        previous[index] = list.last
        next[index] = -1
        if list.last >= 0 { next[list.last] = index } else { list.first = index }
        list.last = index
    }

    mutating func remove(_ index: Int, from list: inout IndexList) {
        let (before, after) = (previous[index], next[index])
        if before >= 0 { next[before] = after } else { list.first = after }
        if after >= 0 { previous[after] = before } else { list.last = before }
        previous[index] = -1
        next[index] = -1
    }
}
