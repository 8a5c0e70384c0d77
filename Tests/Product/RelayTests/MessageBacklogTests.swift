import Domain
import TestSupport
import Testing
import World

@testable import Relay

/// Many messages that are due together, as after an outage.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct MessageBacklogTests {
    private func entry(_ number: UInt8, of website: UInt8) -> LeasedEntry {
        LeasedEntry(
            id: OutboxEntryID(leading: [UInt8](repeating: number, count: 16)), kind: .mail, challenge: nil,
            website: WebsiteID(leading: [UInt8](repeating: website, count: 16)))
    }

    @Test func websitesTakeTurns() {
        let leased = LeasedMessages()
        for number in 1...4 { #expect(leased.add(entry(UInt8(number), of: 1), .mail)) }
        for number in 5...6 { #expect(leased.add(entry(UInt8(number), of: 2), .mail)) }
        let order = (0..<6).compactMap { _ in leased.next(.mail)?.id.bytes.first }
        #expect(order == [1, 5, 2, 6, 3, 4])
        #expect(leased.next(.mail) == nil)
    }

    /// A task is started for each message up to the limit, and again when a task has ended.
    @Test func limitedNumberIsInWork() {
        let leased = LeasedMessages()
        let limit = LeasedMessages.inWork
        let started = (0..<limit + 2).count { leased.add(entry(UInt8($0), of: 1), .mail) }
        #expect(started == limit)
        // The other kind has its own limit.
        #expect(leased.add(entry(0, of: 1), .sms))
        for _ in 0..<limit + 2 { #expect(leased.next(.mail) != nil) }
        #expect(leased.next(.mail) == nil)
        #expect(leased.add(entry(1, of: 1), .mail))
        #expect(!leased.add(entry(2, of: 1), .mail))
    }

    @Test(arguments: StoreKind.all) func backlogOfTextsIsNoMoreThanTheGatewayTakes(store: StoreKind) async throws {
        let post = try await CodeMessageFixture(store, by: .sms)
        let rig = post.rig
        let count = LeasedMessages.textsAtCourier + 10
        var entries: Set<OutboxEntryID> = []
        for counter in 0..<count { entries.insert(try await post.write(counter: Int64(counter))) }
        post.messages.hold()
        try await leaseAgain(rig)
        for _ in 0..<LeasedMessages.textsAtCourier { _ = await post.messages.next() }
        // A message that was just written waits for none of them.
        let new = try await post.write(counter: Int64(count))
        try await rig.on { relay in relay.startDelivery(new) }
        #expect(await post.messages.next().id == new)
        // Their leases end while they wait or are at the courier.
        try await leaseAgain(rig)
        #expect(post.messages.sent.count == LeasedMessages.textsAtCourier + 1)
        post.messages.release()
        await rig.settled()
        #expect(Set(post.messages.sent.map(\.id)) == entries.union([new]))
        #expect(post.messages.sent.count == count + 1)
        #expect(try post.left() == 0)
        #expect(try post.audits("outcome = 'accepted'") == count + 1)
    }

    /// Otherwise a long backlog would delay the stop of the relay, or every message of it would be tried
    /// with a closed courier.
    @Test(arguments: StoreKind.all) func stoppedRelayLeavesItsBacklog(store: StoreKind) async throws {
        let post = try await CodeMessageFixture(store, by: .sms)
        let rig = post.rig
        let (count, begun) = (LeasedMessages.inWork + 10, LeasedMessages.textsAtCourier)
        for counter in 0..<count { _ = try await post.write(counter: Int64(counter)) }
        post.messages.hold()
        try await leaseAgain(rig)
        for _ in 0..<begun { _ = await post.messages.next() }
        try await rig.on { relay in await relay.stopDeliveries() }
        post.messages.release()
        await rig.settled()
        // Those at the gateway have ended, and no other has begun.
        #expect(post.messages.sent.count == begun)
        #expect(try post.left() == count - begun)
    }

    /// Whoever continues after a halt must not send what another relay has taken meanwhile.
    @Test(arguments: StoreKind.all) func waitingMessageOfAnotherHolderIsNotSent(store: StoreKind) async throws {
        let post = try await CodeMessageFixture(store, by: .sms)
        let rig = post.rig
        let (count, begun) = (LeasedMessages.textsAtCourier + 5, LeasedMessages.textsAtCourier)
        for counter in 0..<count { _ = try await post.write(counter: Int64(counter)) }
        post.messages.hold()
        try await leaseAgain(rig)
        for _ in 0..<begun { _ = await post.messages.next() }
        let sent = Set(post.messages.sent.map(\.id))
        try rig.execute("UPDATE outbox SET holder = x'\(String(repeating: "77", count: 16))'")
        post.messages.release()
        await rig.settled()
        #expect(Set(post.messages.sent.map(\.id)) == sent)
    }

    @Test func fullLineIsLeasedAgainOnceItIsShort() {
        let leased = LeasedMessages()
        let most = LeasedMessages.mostWaiting
        for number in 0..<most - 1 { _ = leased.add(entry(UInt8(number % 250), of: 1), .mail) }
        #expect(leased.full.isEmpty)
        _ = leased.add(entry(250, of: 2), .mail)
        #expect(leased.full == [.mail])
        while leased.next(.mail) != nil, !leased.isShortAgain(.mail) {}
        #expect(!leased.isShortAgain(.mail) && leased.full.isEmpty)
        var left = 0
        while leased.next(.mail) != nil { left += 1 }
        #expect(left == most / 2 - 1)
    }

    /// The relay leases what is due, after the leases of the test's messages.
    private func leaseAgain(_ rig: RelayRig) async throws {
        rig.time.advance(by: Relay.messageLease + .seconds(1))
        try await rig.on { relay in await relay.processDueEntries() }
    }
}
