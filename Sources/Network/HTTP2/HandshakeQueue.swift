import EventLoop
import World

/// The decision about a connection at its turn to begin the handshake.
enum HandshakeDecision: Equatable {
    /// The handshake begins, and is taken from the budget of its source.
    case begin
    /// The budget of the source is empty until this time.
    case putOff(until: Instant)
    /// The connection is closed or must end. The budget is unchanged.
    case drop
}

/// The order in which the connections of one loop begin their handshakes. It has no timer and no
/// clock: every call passes the time, and `nextTurn` says when to call again.
///
/// Purpose: the public-key work of a flood must not delay other clients. Sources take turns, one
/// handshake each, so a source that floods delays only its own connections. Within a source the
/// newest connection goes first, because its client is the least likely to have given up.
///
/// A source with an empty budget is parked, with all its connections, until the budget allows one
/// more handshake. Then it goes to the end of the turns, behind all sources that were not parked.
/// The loops share the budget, so another loop may have taken that handshake by then. In that case
/// the source is parked again.
///
/// Invariant: a source with connections is either in `turns` or in `parked`, exactly once. So a
/// step costs O(log n) for n parked sources, however many connections wait. Risk: connections that
/// closed while they waited stay here until a step reaches them. So the owner must call `keep` when
/// there are too many of them. Tests: `HandshakeQueueTests`, and with real servers
/// `HandshakeBudgetTests`.
struct HandshakeQueue<Element> {
    /// The result of one step.
    enum Action {
        case begin(Element)
        /// The source of `newest` was parked. `count` is the number of its connections that are put
        /// off for the first time.
        case putOff(newest: Element, count: Int)
        case dropped
    }

    /// The connections of one source, oldest first.
    private struct Waiting {
        var elements: [Element] = []
        /// The number of connections that were put off. They are the oldest ones, because the
        /// newest leave first.
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

        /// Parks the source. Returns how many of its connections are put off for the first time.
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
    /// The sources that are not parked, in the order of their turns. Entries before `head` are
    /// done.
    private var turns: [Source?] = []
    private var head = 0
    private var parked = TimerHeap<Source?>()

    /// The number of elements of all sources.
    private(set) var count = 0

    /// Adds an element. Returns whether it is put off at once, because its source is parked.
    @discardableResult
    mutating func add(_ element: Element, from source: Source?) -> Bool {
        count += 1
        if bySource[source] == nil { turns.append(source) }
        bySource[source, default: Waiting()].add(element)
        return bySource[source]?.isParked ?? false
    }

    /// Removes the elements that are not wanted any more. It costs O(n), so the owner calls it
    /// rarely.
    mutating func keep(_ isWanted: (Element) -> Bool) {
        for source in Array(bySource.keys) { bySource[source]?.keep(isWanted) }
        count = bySource.values.reduce(0) { $0 + $1.elements.count }
    }

    /// The time of the next step: now, or when the first parked source may continue; nil if the
    /// queue is empty.
    func nextTurn(_ now: Instant) -> Instant? {
        head < turns.count ? now : parked.nextDeadline.map { max($0, now) }
    }

    /// Calls `decide` for the newest element of the source at the front, and applies the decision.
    /// `decide` must not change the queue. Returns nil if no step is due at this time.
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
