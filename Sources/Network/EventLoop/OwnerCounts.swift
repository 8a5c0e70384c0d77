/// The numbers of elements of each owner that wait somewhere, for a queue whose elements may leave it
/// in any order.
///
/// An owner alone may have `capacity` elements. Each further owner may have as many as there are free
/// places, of twice the capacity. So an owner that fills its part leaves room for the others.
public struct OwnerCounts<Owner: Hashable> {
    private var counts: [Owner: Int] = [:]
    public private(set) var total = 0

    public init() {}

    public func hasRoom(for owner: Owner, capacity: Int) -> Bool {
        counts[owner, default: 0] < 2 * capacity - total
    }

    public mutating func add(_ owner: Owner) {
        counts[owner, default: 0] += 1
        total += 1
    }

    public mutating func remove(_ owner: Owner) {
        guard let count = counts[owner] else { return }
        counts[owner] = count > 1 ? count - 1 : nil
        total -= 1
    }
}
