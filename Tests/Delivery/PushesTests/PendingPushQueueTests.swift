import DeliveryOutcomes
import Testing
import World

@testable import Pushes

/// The turns of websites among the pushes that wait for a stream.
struct PendingPushQueueTests {
    private func push(_ owner: String, _ number: Int) -> PendingPush {
        let notification = APNsNotification(
            id: "\(owner) \(number)", deviceToken: "aa", payload: [1], expiresAt: Timestamp(seconds: 2_000_000_000),
            owner: owner)
        return PendingPush(
            notification, since: Instant(nanoseconds: 0), end: Instant(nanoseconds: 1), expiresThen: false
        ) { _ in }
    }

    @Test func floodOfOneWebsiteDelaysNoOther() {
        var queue = PendingPushQueue()
        for number in 0..<1000 { queue.append(push("flood", number)) }
        queue.append(push("shop", 0))
        queue.append(push("shop", 1))
        let first = (0..<4).compactMap { _ in queue.popFirst()?.push.id }
        #expect(first == ["flood 0", "shop 0", "flood 1", "shop 1"])
        #expect(queue.count == 998)
    }

    @Test func fullWebsiteLeavesRoomForOthers() {
        var queue = PendingPushQueue()
        for number in 0..<10 { queue.append(push("flood", number)) }
        #expect(!queue.hasRoom(for: "flood", capacity: 10) && queue.hasRoom(for: "shop", capacity: 10))
        // A push that comes back after an attempt goes first, and has its place.
        let again = push("shop", 0)
        queue.requeue(again)
        #expect(queue.popFirst() === again && queue.count == 10)
    }

    @Test func settledPushHasNoPlace() {
        var queue = PendingPushQueue()
        let late = push("shop", 0)
        queue.append(late)
        queue.append(push("shop", 1))
        queue.settled(late)
        #expect(queue.count == 1)
    }
}
