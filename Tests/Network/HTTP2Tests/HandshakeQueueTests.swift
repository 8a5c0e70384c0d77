import EventLoop
import TestSupport
import Testing
import World

@testable import HTTP2

private func source(_ number: Int) -> Source {
    guard let address = SocketAddress(host: "192.0.2.\(number)", port: 1) else { preconditionFailure("address") }
    return Source(address)
}

private func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: 1) + .milliseconds(milliseconds) }

extension HandshakeQueue {
    /// Returns the elements that begin now, in order. `putOff` grows by the number that is put off
    /// for the first time.
    fileprivate mutating func begin(
        _ now: Instant, putOff: inout Int, _ decide: (Element) -> HandshakeDecision
    ) -> [Element] {
        var begun: [Element] = []
        while let step = step(now, decide) {
            switch step {
            case .begin(let element): begun.append(element)
            case .putOff(_, let count): putOff += count
            case .dropped: break
            }
        }
        return begun
    }
}

struct HandshakeQueueTests {
    private var queue = HandshakeQueue<Int>()
    private var putOff = 0

    /// Adds these elements. The source of an element is its number divided by 100.
    private mutating func add(_ numbers: ClosedRange<Int>) {
        for number in numbers where queue.add(number, from: source(number / 100)) { putOff += 1 }
    }

    @Test mutating func sourcesTakeTurns() {
        for number in 0..<1_000 { queue.add(number, from: source(1)) }
        queue.add(-1, from: source(2))
        queue.add(-2, from: source(3))
        queue.add(-3, from: nil)
        #expect(queue.nextTurn(at(5)) == at(5))
        let order = queue.begin(at(0), putOff: &putOff) { _ in .begin }
        #expect(order.prefix(5) == [999, -1, -2, -3, 998])
        #expect(order.dropFirst(5) == (0..<998).reversed()[...])
        #expect(queue.count == 0 && queue.nextTurn(at(0)) == nil && putOff == 0)
    }

    /// Source 1 has budget for one handshake every 10 ms, from 50 ms on.
    @Test mutating func sourceWithoutBudgetDoesNotDelayOthers() {
        add(100...104)
        add(200...201)
        var free = 0
        func decide(_ number: Int, until moment: Int64) -> HandshakeDecision {
            guard number < 200, free == 0 else {
                free -= number < 200 ? 1 : 0
                return .begin
            }
            return .putOff(until: at(moment))
        }
        var order = queue.begin(at(0), putOff: &putOff) { decide($0, until: 50) }
        #expect(order == [201, 200] && putOff == 5)
        #expect(queue.nextTurn(at(0)) == at(50))
        // Other sources continue. A new connection of this source waits with the others, without a
        // query of its budget.
        add(300...300)
        add(105...105)
        #expect(putOff == 6)
        order = queue.begin(at(49), putOff: &putOff) { $0 < 200 ? .drop : .begin }
        #expect(order == [300])
        free = 1
        order = queue.begin(at(50), putOff: &putOff) { decide($0, until: 60) }
        #expect(order == [105] && putOff == 6)
        #expect(queue.nextTurn(at(50)) == at(60))
        // Another loop may have used the budget, so the source waits again.
        order = queue.begin(at(60), putOff: &putOff) { decide($0, until: 70) }
        #expect(order == [] && queue.nextTurn(at(60)) == at(70))
        free = 9
        order = queue.begin(at(70), putOff: &putOff) { decide($0, until: 80) }
        #expect(order == [104, 103, 102, 101, 100] && putOff == 6 && queue.count == 0)
        #expect(queue.nextTurn(at(70)) == nil)
    }

    /// Sources that stayed within their budget precede a source that did not.
    @Test mutating func parkedSourceGoesToTheEndOfTheTurns() {
        add(100...100)
        _ = queue.begin(at(0), putOff: &putOff) { _ in .putOff(until: at(5)) }
        add(200...201)
        add(300...300)
        let order = queue.begin(at(5), putOff: &putOff) { _ in .begin }
        #expect(order == [201, 300, 100, 200])
    }

    @Test mutating func parkedSourcesResumeInTheOrderOfTheirTime() {
        let moments: [Int64] = [40, 10, 30, 20]
        for index in 1...4 { add((100 * index)...(100 * index)) }
        _ = queue.begin(at(0), putOff: &putOff) { .putOff(until: at(moments[$0 / 100 - 1])) }
        var order: [Int] = []
        var times: [Instant] = []
        while let next = queue.nextTurn(at(0)) {
            times.append(next)
            order += queue.begin(next, putOff: &putOff) { _ in .begin }
        }
        #expect(order == [200, 400, 300, 100] && times == [at(10), at(20), at(30), at(40)])
    }

    /// Closed connections use no budget, and their source keeps its turn.
    @Test mutating func closedConnectionUsesNoBudget() {
        add(100...199)
        add(200...200)
        var taken = 0
        let order = queue.begin(at(0), putOff: &putOff) { number in
            guard number >= 200 || number.isMultiple(of: 50) else { return .drop }
            taken += 1
            return .begin
        }
        #expect(order == [150, 200, 100] && taken == 3 && queue.count == 0)
    }

    @Test mutating func cancelledHandshakesAreRemovedAndParkedSourcesStayParked() {
        add(100...110)
        add(200...203)
        _ = queue.begin(at(0), putOff: &putOff) { $0 < 200 ? .putOff(until: at(9)) : .drop }
        add(200...203)
        queue.keep { $0 == 103 || $0 == 104 || $0 == 201 }
        #expect(queue.count == 3)
        add(111...111)
        #expect(putOff == 12)
        var order = queue.begin(at(0), putOff: &putOff) { _ in .begin }
        #expect(order == [201] && queue.nextTurn(at(0)) == at(9))
        order = queue.begin(at(9), putOff: &putOff) { _ in .begin }
        #expect(order == [111, 104, 103] && putOff == 12)
        // All connections of this source are removed.
        add(300...305)
        _ = queue.begin(at(10), putOff: &putOff) { _ in .putOff(until: at(19)) }
        queue.keep { _ in false }
        #expect(queue.count == 0)
        order = queue.begin(at(19), putOff: &putOff) { _ in .begin }
        #expect(order == [] && queue.nextTurn(at(19)) == nil)
    }
}

/// Two loops that share an admission table. Connections of several sources open and close at
/// random.
private struct Loops {
    struct Connection {
        let slot: Int
        let source: Int
        var isOpen = true
        var hasBegun = false
    }

    let limits: AdmissionLimits
    var table: AdmissionTable
    var queues = [HandshakeQueue<Int>(), HandshakeQueue<Int>()]
    var connections: [Connection] = []
    /// The connections of each queue by source, oldest first.
    var lines: [[Int: [Int]]] = [[:], [:]]
    var begun: [Int: Int] = [:]
    var (asked, dropped, parked, putOff) = (0, 0, 0, 0)
    var now = at(0)

    init(_ limits: AdmissionLimits) {
        self.limits = limits
        table = AdmissionTable(limits)
    }

    mutating func add(_ number: Int, to loop: Int) {
        guard case .admitted(let slot, _) = table.admit(source(number), at: now) else { return }
        if queues[loop].add(connections.count, from: source(number)) { putOff += 1 }
        lines[loop][number, default: []].append(connections.count)
        connections.append(Connection(slot: slot, source: number))
    }

    mutating func close(_ index: Int) {
        guard connections[index].isOpen, !connections[index].hasBegun else { return }
        connections[index].isOpen = false
        table.release(connections[index].slot)
    }

    mutating func decide(_ index: Int) -> HandshakeDecision {
        guard connections[index].isOpen else {
            dropped += 1
            return .drop
        }
        asked += 1
        return table.takeHandshake(connections[index].slot, at: now)
    }

    mutating func run(_ loop: Int, steps: Int) {
        for _ in 0..<steps {
            var queue = queues[loop]
            queues[loop] = HandshakeQueue()
            let step = queue.step(now) { decide($0) }
            queues[loop] = queue
            switch step {
            case .begin(let index): begin(index, on: loop)
            case .putOff(_, let count):
                parked += 1
                putOff += count
            case .dropped: break
            case nil: return
            }
        }
    }

    private mutating func begin(_ index: Int, on loop: Int) {
        let source = connections[index].source
        #expect(connections[index].isOpen && !connections[index].hasBegun)
        connections[index].hasBegun = true
        while let newest = lines[loop][source]?.popLast() {
            if newest == index { break }
            #expect(!connections[newest].isOpen, "a newer one waits")
        }
        begun[source, default: 0] += 1
        let allowed = limits.handshakesAtOnce + Int((now - at(0)).wholeMilliseconds) * limits.handshakesPerSecond / 1000
        #expect(begun[source, default: 0] <= allowed)
    }
}

struct HandshakeLoopsTests {
    @Test(arguments: 0..<8) func handshakeBudgetHoldsAcrossLoops(seed: UInt64) {
        let randomness = SeededRandomness(seed: seed)
        func pick(_ count: Int) -> Int { Int(randomness.next() % UInt64(count)) }
        var limits = AdmissionLimits(total: 40_000)
        limits.handshakesPerSecond = 20
        var loops = Loops(limits)
        for _ in 0..<4_000 {
            switch pick(8) {
            case 0...3: loops.add(pick(2) == 0 ? 1 : 1 + pick(6), to: pick(2))
            case 4 where !loops.connections.isEmpty: loops.close(pick(loops.connections.count))
            case 5: loops.now = loops.now + .microseconds(pick(5_000))
            default: loops.run(pick(2), steps: 1 + pick(4))
            }
        }
        while let next = loops.queues.compactMap({ $0.nextTurn(loops.now) }).min() {
            loops.now = next
            for loop in 0...1 { loops.run(loop, steps: .max) }
        }
        let open = loops.connections.filter(\.isOpen)
        #expect(open.count > 1_000 && open.allSatisfy(\.hasBegun))
        #expect(loops.putOff > 100 && loops.putOff <= loops.connections.count)
        // For each handshake that one loop takes, each loop queries the budget in vain at most
        // once.
        #expect(loops.asked == open.count + loops.parked)
        #expect(loops.parked <= 2 * (open.count + 6))
        #expect(loops.dropped == loops.connections.count - open.count)
    }
}
