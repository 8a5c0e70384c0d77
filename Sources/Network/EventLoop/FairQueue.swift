/// A queue that serves its owners in turn, so that no owner waits for the elements of another one.
///
/// Each owner has its own line, first in, first out. The owner at the front may take elements until
/// their cost has used up its credit. Then the next owner has its turn. This is surplus
/// round-robin: the last element of a turn may cost more than the remaining credit, and the owner's
/// next turns pay the debt. Adding, taking and putting back take constant time, whatever the number
/// of elements and owners. Tests: `FairQueueTests`.
///
/// The number of elements is bounded without a fixed share for each owner: an owner may have as
/// many elements as there are free places (`hasRoom`). A single owner can fill half of the queue,
/// and three owners three quarters of it. So there is always a place for one more owner.
public struct FairQueue<Owner: Hashable, Element> {
    private static var none: Int32 { -1 }

    private struct Node {
        var element: Element?
        var cost: Int32
        /// The next free node; used only if this node is free.
        var next: Int32
    }

    private struct OwnerQueue {
        let owner: Owner
        var first = FairQueue.none
        var last = FairQueue.none
        var count = 0
        /// The rest of this turn's cost. If it is negative, it is the debt that the next turns pay.
        var credit: Int
        /// The line that has its turn after this one.
        var next = FairQueue.none
    }

    private let turn: Int
    private var places: [Owner: Int32] = [:]
    private var lines: [OwnerQueue?] = []
    private var freeLines: [Int32] = []
    private var nodes: [Node] = []
    private var freeNode = Self.none
    private var firstLine = Self.none
    private var lastLine = Self.none
    /// The number of elements of all owners.
    public private(set) var count = 0

    /// Makes an empty queue.
    /// - Parameter turn: the cost that an owner may take in one turn.
    public init(turn: Int = 1) {
        precondition(turn > 0, "a turn is worth something")
        self.turn = turn
    }

    public var isEmpty: Bool { count == 0 }

    /// The number of owners that have elements in the queue.
    public var owners: Int { places.count }

    public func count(of owner: Owner) -> Int { places[owner].map { line($0).count } ?? 0 }

    /// Whether the owner may add another element to a queue of this capacity.
    public func hasRoom(for owner: Owner, capacity: Int) -> Bool { count(of: owner) < capacity - count }

    /// Adds an element at the end of the owner's line. A negative cost counts as 0.
    public mutating func append(_ element: Element, of owner: Owner, cost: Int = 1) {
        let place = places[owner] ?? startLine(owner, atFront: false)
        let node = makeNode(element, cost)
        if line(place).last == Self.none {
            lines[Int(place)]?.first = node
        } else {
            nodes[Int(line(place).last)].next = node
        }
        lines[Int(place)]?.last = node
        added(to: place)
    }

    /// Puts an element back at the front of the owner's line, after it was taken. An owner without
    /// a line gets the next turn.
    public mutating func requeue(_ element: Element, of owner: Owner, cost: Int = 1) {
        let place = places[owner] ?? startLine(owner, atFront: true)
        let node = makeNode(element, cost)
        nodes[Int(node)].next = line(place).first
        lines[Int(place)]?.first = node
        if line(place).last == Self.none { lines[Int(place)]?.last = node }
        added(to: place)
    }

    /// The element that `popFirst` would return.
    public var first: Element? {
        mutating get {
            guard settleTurn() else { return nil }
            return nodes[Int(line(firstLine).first)].element
        }
    }

    public mutating func popFirst() -> Element? {
        guard settleTurn() else { return nil }
        let place = firstLine
        let node = line(place).first
        let element = nodes[Int(node)].element
        let next = nodes[Int(node)].next
        lines[Int(place)]?.first = next
        lines[Int(place)]?.count -= 1
        lines[Int(place)]?.credit -= Int(nodes[Int(node)].cost)
        count -= 1
        nodes[Int(node)].element = nil
        nodes[Int(node)].next = freeNode
        freeNode = node
        if next == Self.none { endLine() }
        return element
    }

    /// Removes all elements, in the order in which `popFirst` returns them.
    public mutating func popAll() -> [Element] {
        var all: [Element] = []
        all.reserveCapacity(count)
        while let element = popFirst() { all.append(element) }
        return all
    }

    // MARK: Lines

    private func line(_ place: Int32) -> OwnerQueue {
        guard let line = lines[Int(place)] else { preconditionFailure("a place without a line") }
        return line
    }

    private mutating func startLine(_ owner: Owner, atFront: Bool) -> Int32 {
        let place: Int32
        if let free = freeLines.popLast() {
            place = free
        } else {
            place = Int32(lines.count)
            lines.append(nil)
        }
        lines[Int(place)] = OwnerQueue(owner: owner, credit: turn)
        places[owner] = place
        if firstLine == Self.none {
            firstLine = place
            lastLine = place
        } else if atFront {
            lines[Int(place)]?.next = firstLine
            firstLine = place
        } else {
            lines[Int(lastLine)]?.next = place
            lastLine = place
        }
        return place
    }

    /// Moves the next line with credit to the front. Returns false if the queue is empty.
    private mutating func settleTurn() -> Bool {
        guard firstLine != Self.none else { return false }
        while line(firstLine).credit <= 0 {
            let place = firstLine
            lines[Int(place)]?.credit += turn
            guard place != lastLine else { continue }
            firstLine = line(place).next
            lines[Int(place)]?.next = Self.none
            lines[Int(lastLine)]?.next = place
            lastLine = place
        }
        return true
    }

    /// Removes the first line, because it is empty.
    private mutating func endLine() {
        let place = firstLine
        places[line(place).owner] = nil
        firstLine = line(place).next
        if firstLine == Self.none { lastLine = Self.none }
        lines[Int(place)] = nil
        freeLines.append(place)
    }

    private mutating func added(to place: Int32) {
        lines[Int(place)]?.count += 1
        count += 1
    }

    private mutating func makeNode(_ element: Element, _ cost: Int) -> Int32 {
        let node = Node(element: element, cost: Int32(clamping: max(cost, 0)), next: Self.none)
        guard freeNode != Self.none else {
            nodes.append(node)
            return Int32(nodes.count - 1)
        }
        let place = freeNode
        freeNode = nodes[Int(place)].next
        nodes[Int(place)] = node
        return place
    }
}
