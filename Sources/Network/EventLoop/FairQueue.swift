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
///
/// The code can be inlined, so that each module compiles it for its own owners and elements.
/// Without that, the queue looks up their types at run time, with the lock of its user held.
@frozen public struct FairQueue<Owner: Hashable, Element> {
    @inlinable static var none: Int32 { -1 }

    @usableFromInline struct Node {
        @usableFromInline var element: Element?
        @usableFromInline var cost: Int32
        /// The next free node; used only if this node is free.
        @usableFromInline var next: Int32

        @inlinable init(_ element: Element, cost: Int32) {
            self.element = element
            self.cost = cost
            next = FairQueue.none
        }
    }

    @usableFromInline struct OwnerQueue {
        @usableFromInline let owner: Owner
        @usableFromInline var first = FairQueue.none
        @usableFromInline var last = FairQueue.none
        @usableFromInline var count = 0
        /// The rest of this turn's cost. If it is negative, it is the debt that the next turns pay.
        @usableFromInline var credit: Int
        /// The line that has its turn after this one.
        @usableFromInline var next = FairQueue.none

        @inlinable init(_ owner: Owner, credit: Int) {
            self.owner = owner
            self.credit = credit
        }
    }

    @usableFromInline let turn: Int
    @usableFromInline var places: [Owner: Int32] = [:]
    @usableFromInline var lines: [OwnerQueue?] = []
    @usableFromInline var freeLines: [Int32] = []
    @usableFromInline var nodes: [Node] = []
    @usableFromInline var freeNode = Self.none
    @usableFromInline var firstLine = Self.none
    @usableFromInline var lastLine = Self.none
    @usableFromInline var total = 0

    /// Makes an empty queue.
    /// - Parameter turn: the cost that an owner may take in one turn.
    @inlinable public init(turn: Int = 1) {
        precondition(turn > 0, "a turn is worth something")
        self.turn = turn
    }

    /// The number of elements of all owners.
    @inlinable public var count: Int { total }

    @inlinable public var isEmpty: Bool { total == 0 }

    /// The number of owners that have elements in the queue.
    @inlinable public var owners: Int { places.count }

    @inlinable public func count(of owner: Owner) -> Int { places[owner].map { line($0).count } ?? 0 }

    /// Whether the owner may add another element to a queue of this capacity.
    @inlinable public func hasRoom(for owner: Owner, capacity: Int) -> Bool { count(of: owner) < capacity - count }

    /// Adds an element at the end of the owner's line. A negative cost counts as 0.
    @inlinable public mutating func append(_ element: Element, of owner: Owner, cost: Int = 1) {
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
    @inlinable public mutating func requeue(_ element: Element, of owner: Owner, cost: Int = 1) {
        let place = places[owner] ?? startLine(owner, atFront: true)
        let node = makeNode(element, cost)
        nodes[Int(node)].next = line(place).first
        lines[Int(place)]?.first = node
        if line(place).last == Self.none { lines[Int(place)]?.last = node }
        added(to: place)
    }

    /// The element that `popFirst` would return.
    @inlinable public var first: Element? {
        mutating get {
            guard settleTurn() else { return nil }
            return nodes[Int(line(firstLine).first)].element
        }
    }

    @inlinable public mutating func popFirst() -> Element? {
        guard settleTurn() else { return nil }
        let place = firstLine
        let node = line(place).first
        let element = nodes[Int(node)].element
        let next = nodes[Int(node)].next
        lines[Int(place)]?.first = next
        lines[Int(place)]?.count -= 1
        lines[Int(place)]?.credit -= Int(nodes[Int(node)].cost)
        total -= 1
        nodes[Int(node)].element = nil
        nodes[Int(node)].next = freeNode
        freeNode = node
        if next == Self.none { endLine() }
        return element
    }

    /// Removes all elements, in the order in which `popFirst` returns them.
    @inlinable public mutating func popAll() -> [Element] {
        var all: [Element] = []
        all.reserveCapacity(count)
        while let element = popFirst() { all.append(element) }
        return all
    }

    // MARK: Lines

    @inlinable func line(_ place: Int32) -> OwnerQueue {
        guard let line = lines[Int(place)] else { preconditionFailure("a place without a line") }
        return line
    }

    @inlinable mutating func startLine(_ owner: Owner, atFront: Bool) -> Int32 {
        let place: Int32
        if let free = freeLines.popLast() {
            place = free
        } else {
            place = Int32(lines.count)
            lines.append(nil)
        }
        lines[Int(place)] = OwnerQueue(owner, credit: turn)
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
    @inlinable mutating func settleTurn() -> Bool {
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
    @inlinable mutating func endLine() {
        let place = firstLine
        places[line(place).owner] = nil
        firstLine = line(place).next
        if firstLine == Self.none { lastLine = Self.none }
        lines[Int(place)] = nil
        freeLines.append(place)
    }

    @inlinable mutating func added(to place: Int32) {
        lines[Int(place)]?.count += 1
        total += 1
    }

    @inlinable mutating func makeNode(_ element: Element, _ cost: Int) -> Int32 {
        let node = Node(element, cost: Int32(clamping: max(cost, 0)))
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
