import EventLoop
import Testing

/// The share of each owner in a queue that elements may leave in any order.
struct OwnerCountsTests {
    /// Adds as many elements as there is room for, and returns their number.
    private func fill(_ counts: inout OwnerCounts<String>, _ owner: String, capacity: Int) -> Int {
        var added = 0
        while added < 1000, counts.hasRoom(for: owner, capacity: capacity) {
            counts.add(owner)
            added += 1
        }
        return added
    }

    @Test func ownerAloneHasTheCapacityAndLeavesRoomForOthers() {
        var counts = OwnerCounts<String>()
        #expect(fill(&counts, "flood", capacity: 16) == 16)
        #expect(fill(&counts, "shop", capacity: 16) == 8)
        #expect(fill(&counts, "bank", capacity: 16) == 4)
        #expect(counts.total == 28 && !counts.hasRoom(for: "flood", capacity: 16))
        for _ in 0..<16 { counts.remove("flood") }
        #expect(counts.total == 12 && counts.hasRoom(for: "flood", capacity: 16))
    }

    @Test func unknownOwnerRemovesNothing() {
        var counts = OwnerCounts<String>()
        counts.add("shop")
        counts.remove("bank")
        counts.remove("shop")
        counts.remove("shop")
        #expect(counts.total == 0)
    }
}
