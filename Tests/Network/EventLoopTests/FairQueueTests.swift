import EventLoop
import Testing

/// The turns of the owners, the order of each owner's items, and the bound on a wait.
struct FairQueueTests {
    private struct Item: Equatable {
        let owner: Int
        let number: Int
    }

    private func taken(_ queue: inout FairQueue<Int, Item>, _ most: Int) -> [Item] {
        (0..<most).compactMap { _ in queue.popFirst() }
    }

    @Test func floodingOwnerDoesNotDelayOthers() {
        var queue = FairQueue<Int, Item>()
        for number in 0..<10_000 { queue.append(Item(owner: 0, number: number), of: 0) }
        for owner in 1...5 { queue.append(Item(owner: owner, number: 0), of: owner) }
        // The flood's first item leads. Then each other owner takes one item, although all items of
        // the flood were added earlier.
        #expect(taken(&queue, 6) == (0...5).map { Item(owner: $0, number: 0) })
        #expect(taken(&queue, 20_000).map(\.number) == Array(1..<10_000))
        #expect(queue.isEmpty && queue.owners == 0)
    }

    @Test func costIsChargedAgainstLaterTurns() {
        var queue = FairQueue<Int, Item>(turn: 10)
        for number in 0..<4 { queue.append(Item(owner: 0, number: number), of: 0, cost: 25) }
        for number in 0..<40 { queue.append(Item(owner: 1, number: number), of: 1, cost: 1) }
        // One item of owner 0 costs as much as 25 of owner 1. Their costs differ by about one turn.
        let order = taken(&queue, 44).map(\.owner)
        var cost = [0, 0]
        for owner in order {
            cost[owner] += owner == 0 ? 25 : 1
            // The shares are compared only while both owners have items.
            guard cost[0] < 100, cost[1] < 40 else { break }
            #expect(abs(cost[0] - cost[1]) <= 35)
        }
        #expect(queue.isEmpty)
    }

    @Test func requeuedItemComesFirst() {
        var queue = FairQueue<Int, Item>()
        for number in 0..<4 { queue.append(Item(owner: 0, number: number), of: 0) }
        queue.append(Item(owner: 1, number: 0), of: 1)
        let first = taken(&queue, 3)
        for item in first.reversed() { queue.requeue(item, of: item.owner) }
        #expect(queue.count == 5)
        let order = taken(&queue, 5)
        #expect(order.filter { $0.owner == 0 }.map(\.number) == [0, 1, 2, 3])
        #expect(order.prefix(3).contains(Item(owner: 1, number: 0)))
    }

    @Test func oneOwnerCanFillOnlyHalfTheQueue() {
        var queue = FairQueue<Int, Item>()
        func fill(_ owner: Int) -> Int {
            var added = 0
            while queue.hasRoom(for: owner, capacity: 1000) {
                queue.append(Item(owner: owner, number: added), of: owner)
                added += 1
            }
            return added
        }
        #expect(fill(0) == 500)
        #expect(fill(1) == 250)
        #expect(fill(2) == 125)
        for owner in 3..<100 { #expect(queue.hasRoom(for: owner, capacity: 1000) || queue.count == 1000) }
    }

    /// Random operations on the queue, compared with a plain list for each owner.
    @Test(arguments: [UInt64(1), 2, 3, 4, 5]) func itemsOfAnOwnerKeepTheirOrder(seed: UInt64) {
        var random = SplitMix(state: seed)
        var queue = FairQueue<Int, Item>(turn: Int.random(in: 1...20, using: &random))
        var lines: [Int: [Item]] = [:]
        // Items of other owners that were taken while this owner had items, counted since its last
        // own item.
        var patience: [Int: Int] = [:]
        var drawn = 0
        for _ in 0..<20_000 {
            let flood = Int.random(in: 0..<3, using: &random) == 0
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<4:
                let owner = flood ? 0 : Int.random(in: 0..<8, using: &random)
                drawn += 1
                lines[owner, default: []].append(Item(owner: owner, number: drawn))
                queue.append(Item(owner: owner, number: drawn), of: owner, cost: 5)
            case 4:
                guard let item = queue.popFirst() else { continue }
                #expect(lines[item.owner]?.first == item)
                queue.requeue(item, of: item.owner, cost: 5)
            default:
                let shown = queue.first
                guard let item = queue.popFirst() else {
                    #expect(lines.values.allSatisfy { $0.isEmpty })
                    continue
                }
                #expect(shown == item)
                #expect(lines[item.owner]?.first == item)
                lines[item.owner]?.removeFirst()
                patience[item.owner] = 0
                for (owner, line) in lines where owner != item.owner {
                    patience[owner] = line.isEmpty ? 0 : patience[owner, default: 0] + 1
                }
                // A turn costs at most 20 and can exceed that by one item, so it takes at most five
                // items at 5 each. Seven other owners have two turns each, because a requeue can
                // shorten a turn.
                #expect(patience.values.allSatisfy { $0 <= 70 })
            }
            #expect(queue.count == lines.values.reduce(0) { $0 + $1.count })
        }
        for item in queue.popAll() {
            #expect(lines[item.owner]?.first == item)
            lines[item.owner]?.removeFirst()
        }
        #expect(lines.values.allSatisfy { $0.isEmpty })
        #expect(queue.isEmpty)
    }
}
