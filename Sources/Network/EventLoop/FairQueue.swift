/// A queue that serves its owners in turn, so that none of them waits for what another one has queued.
///
/// Each owner has a line of its own, first in, first out. The owner whose turn it is may take elements until their cost
/// has used up what a turn is worth; then the next owner has its turn (surplus round-robin: the last element of a turn
/// may cost more than is left, and the owner's next turns pay for it). Adding, taking and putting back take the same
/// time however many elements or owners there are.
///
/// The number of elements is bounded without fixing a share: an owner may have as many waiting as
/// there are places left. A single owner can fill half of the queue, three together three quarters,
/// and there is always a place for one more.
public struct FairQueue<Owner: Hashable, Element> {
    private static var none: Int32 { -1 }

    private struct Node {
        var element: Element?
        var cost: Int32
        /// The next free node, if this one is free.
        var next: Int32
    }

    private struct OwnerQueue {
        let owner: Owner
        var first = FairQueue.none
        var last = FairQueue.none
        var count = 0
        /// The rest of this turn; below zero, the debt that the next turns pay.
        var credit: Int
        /// The line whose turn it is after this one.
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
    /// Elements of all owners.
    public private(set) var count = 0

    /// - Parameter turn: the cost that an owner may take in one turn.
    public init(turn: Int = 1) {
        precondition(turn > 0, "a turn is worth something")
        self.turn = turn
    }

    public var isEmpty: Bool { count == 0 }

    /// The number of owners that have something waiting.
    public var owners: Int { places.count }

    public func count(of owner: Owner) -> Int { places[owner].map { line($0).count } ?? 0 }

    /// Whether the owner may add one more where `capacity` elements have a place.
    public func hasRoom(for owner: Owner, capacity: Int) -> Bool { count(of: owner) < capacity - count }

    /// At the end of the owner's line. A negative cost counts as 0.
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

    /// At the front of the owner's line, for what was taken and comes back. An owner without a line is the next one.
    public mutating func requeue(_ element: Element, of owner: Owner, cost: Int = 1) {
        let place = places[owner] ?? startLine(owner, atFront: true)
        let node = makeNode(element, cost)
        nodes[Int(node)].next = line(place).first
        lines[Int(place)]?.first = node
        if line(place).last == Self.none { lines[Int(place)]?.last = node }
        added(to: place)
    }

    /// The element that `popFirst` would take.
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

    /// Everything, in the order in which it would have been taken.
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

    /// Brings the line to the front whose turn it is; false where nothing waits.
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

    /// The first line is empty.
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
