import Domain
import Testing
import Webhooks
import World

@testable import Relay

/// The limit on the webhooks in flight to all websites together.
struct WebhookLimitTests {
    private let queues = WebhookQueues()
    private let now = Timestamp(seconds: 1_800_000_000)

    private func website(_ number: UInt8) -> WebsiteID {
        WebsiteID(leading: [UInt8](repeating: number, count: 16))
    }

    private func lease(_ number: UInt8) -> Int {
        let place = EndpointRevision(
            url: "https://shop.example", operation: OperationID(leading: [UInt8](repeating: 1, count: 16)))
        return queues.lease(DueEndpoint(id: website(number), standing: WebhookHealth(), place: place), at: now)
    }

    /// Leases as much as there is room for, and returns the webhooks that leave.
    private func send(_ number: UInt8, _ room: Int, round: UInt8) -> [OutboxEntryID] {
        let rows = (0..<room).map { index in
            WebhookRow(
                id: OutboxEntryID(leading: [number, round, UInt8(index)] + [UInt8](repeating: 0, count: 13)),
                event: "login.decided", website: website(number), websiteName: "shop", url: "https://shop.example",
                secrets: [], previousUntil: nil, user: UserID(leading: [UInt8](repeating: 2, count: 16)),
                token: UserToken(leading: [UInt8](repeating: 3, count: 16)), challenge: nil, device: nil,
                createdAt: now, expiresAt: now + .seconds(3600), failures: 0, place: index)
        }
        return queues.addLeased(rows, of: website(number), at: now, isClosed: false).leaving
    }

    /// A round leases for all websites at once, before any of these webhooks is in flight. Their
    /// receivers were quick, and may hang together now.
    @Test func roundOfQuickWebsitesKeepsTheLimit() {
        let websites = 1...UInt8(20)
        // Their windows grow to the largest, one website after the other.
        for number in websites {
            for round in 0..<UInt8(6) {
                for id in send(number, lease(number), round: round) {
                    _ = queues.end(id, of: website(number), .answered(status: 200), at: now, jitter: 0)
                }
            }
        }
        let rooms = websites.map { lease($0) }
        #expect(rooms.first == 100)
        let most = WebhookQueues.mostExtra + websites.count * WebhookWindow.least
        #expect(rooms.reduce(0, +) == most)
        // Each has the few that nobody can take from it.
        #expect(rooms.allSatisfy { $0 >= WebhookWindow.least })
        // A lease that brings fewer webhooks than it might frees the rest of its room.
        for number in websites { _ = send(number, 0, round: 6) }
        #expect(lease(1) == 100)
    }
}
