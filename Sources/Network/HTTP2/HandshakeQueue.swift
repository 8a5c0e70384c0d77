import EventLoop
import World

/// The answer to a connection whose turn to begin its handshake has come.
enum HandshakeDecision: Equatable {
    /// It begins. Its source's budget has one less.
    case begin
    /// The budget of its source is empty until then.
    case putOff(until: Instant)
    /// It is closed. Nothing was taken from the budget.
    case drop
}

/// The order in which the connections of one loop begin their handshakes. It has no timer and no clock: every call
/// brings the time, and `nextTurn` says when to call again.
///
/// Sources take turns, one handshake each, so a source that floods delays its own connections alone. Within a source the
/// newest goes first: its client is the least likely to have given up.
///
/// A source whose budget is empty is parked, with all its connections, until the budget has its next handshake. Then it
/// goes to the end of the turns, behind every source that has been waiting within its budget. The loops share the
/// budget, so another loop may have taken the handshake by then: the source is parked again.
///
/// Invariant: a source with connections is either in `turns` or in `parked`, once. So a step costs O(log n) for n
/// parked sources, however many connections wait. What can go wrong: connections that were closed while they waited
/// stay here until a step comes upon them, so the owner calls `keep` when they have become too many.
struct HandshakeQueue<Element> {
    /// The result of one step.
    enum Action {
        case begin(Element)
        /// The source of `newest` was parked. `count` is how many of its connections that puts off for the first time.
        case putOff(newest: Element, count: Int)
        case dropped
    }

    /// The connections of one source, oldest first.
    private struct Waiting {
        var elements: [Element] = []
        /// The number of those that have been put off. They are the oldest ones, because the newest leave first.
        var putOff = 0
        var isParked = false

        mutating func add(_ element: Element) {
            elements.append(element)
            if isParked { putOff += 1 }
        }

        mutating func removeNewest() {
            elements.removeLast()
            putOff = min(putOff, elements.count)
        }

        /// Returns how many are put off for the first time.
        mutating func park() -> Int {
            let count = elements.count - putOff
            putOff = elements.count
            isParked = true
            return count
        }

        mutating func keep(_ isWanted: (Element) -> Bool) {
            putOff = elements[..<putOff].count(where: isWanted)
            elements.removeAll { !isWanted($0) }
        }
    }

    private var bySource: [Source?: Waiting] = [:]
    /// The sources that are not parked, in the order of their turns. Entries before `head` have had their turn.
    private var turns: [Source?] = []
    private var head = 0
    private var parked = TimerHeap<Source?>()

    /// The number of elements of all sources.
    private(set) var count = 0

    /// Returns whether the element is put off at once, because its source is parked.
    @discardableResult
    mutating func add(_ element: Element, from source: Source?) -> Bool {
        count += 1
        if bySource[source] == nil { turns.append(source) }
        bySource[source, default: Waiting()].add(element)
        return bySource[source]?.isParked ?? false
    }

    /// Keeps only the elements that are still wanted. O(n): for the owner to call seldom.
    mutating func keep(_ isWanted: (Element) -> Bool) {
        for source in Array(bySource.keys) { bySource[source]?.keep(isWanted) }
        count = bySource.values.reduce(0) { $0 + $1.elements.count }
    }

    /// When the next step is due: now, when the first parked source may go on, or never.
    func nextTurn(_ now: Instant) -> Instant? {
        head < turns.count ? now : parked.nextDeadline.map { max($0, now) }
    }

    /// Asks `decide` about the newest element of the source whose turn it is, and does what it says. `decide` must not
    /// touch the queue. Returns nil if there is nothing to do at this time.
    mutating func step(_ now: Instant, _ decide: (Element) -> HandshakeDecision) -> Action? {
        if let source = parked.popDue(now) {
            bySource[source]?.isParked = false
            turns.append(source)
        }
        guard head < turns.count else { return nil }
        let source = turns[head]
        guard let element = bySource[source]?.elements.last else {
            // `keep` has removed all connections of this source.
            endTurn(of: source)
            return .dropped
        }
        switch decide(element) {
        case .begin:
            removeNewest(of: source)
            endTurn(of: source)
            return .begin(element)
        case .drop:
            // The source keeps its turn unless this was its last one.
            removeNewest(of: source)
            if bySource[source]?.elements.isEmpty == true { endTurn(of: source) }
            return .dropped
        case .putOff(let moment):
            takeTurn()
            parked.add(source, at: moment)
            return .putOff(newest: element, count: bySource[source]?.park() ?? 0)
        }
    }

    private mutating func removeNewest(of source: Source?) {
        bySource[source]?.removeNewest()
        count -= 1
    }

    private mutating func endTurn(of source: Source?) {
        takeTurn()
        if bySource[source]?.elements.isEmpty == true { bySource[source] = nil } else { turns.append(source) }
    }

    private mutating func takeTurn() {
        head += 1
        if head == turns.count {
            turns.removeAll(keepingCapacity: turns.capacity <= 4096)
            head = 0
        } else if head >= 4096 {
            turns.removeFirst(head)
            head = 0
        }
    }
}
