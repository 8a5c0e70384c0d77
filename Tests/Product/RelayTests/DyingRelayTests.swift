import DeliveryOutcomes
import Domain
import Storage
import Synchronization
import TestSupport
import Testing
import World

@testable import Relay

/// A relay that dies at each step of a message, while another relay on the same store continues. Nothing is lost,
/// no message becomes a dead letter by mistake, and a message that is sent twice has one id.
@Suite(.timeLimit(.minutes(10)), .mayBlock) struct DyingRelayTests {
    /// The moment at which the relay dies.
    enum Moment: CaseIterable {
        case beforeItsClaim, afterItsClaim, beforeItSends, afterItSent, beforeItSettles, afterItSettled
    }

    private static let rounds = 102

    @Test(arguments: [StoreKind.file, .mariadb]) func messagesOfADyingRelayAreSentByAnother(kind: StoreKind)
        async throws
    {
        let place = try await kind.fresh()
        let rig = try await RelayRig(over: place, time: TestTime())
        let shop = try await rig.website("shop", policies: ["number": "0"])
        var posts: [(post: CodeMessageFixture, entry: OutboxEntryID, moment: Moment)] = []
        for round in 0..<Self.rounds {
            let moment = Moment.allCases[round % Moment.allCases.count]
            let post = try await CodeMessageFixture(rig, user: "user-\(round)", at: shop, living: 600)
            let life = Life(until: moment)
            let store = try life.store(at: place.url)
            let relay = try rig.relay(over: store, mail: life.courier(before: rig.mails))
            try await rig.on { _ in await relay.runHeartbeat() }
            // Every other message belongs to a login and is sent at once; a round leases the rest.
            let isOwn = round % 2 == 0 && moment != .beforeItsClaim && moment != .afterItsClaim
            let entry = try await post.write(of: relay)
            if isOwn {
                try await rig.on { _ in relay.startDelivery(entry) }
            } else {
                rig.time.advance(by: Relay.messageLease + .seconds(1))
                try await rig.on { _ in await relay.processDueEntries() }
            }
            await rig.settled()
            #expect(life.isOver, "\(moment)")
            // Its heartbeat stands still, and it is declared dead.
            for _ in 0..<5 {
                rig.time.advance(by: .seconds(2))
                try await rig.on { relay in await relay.runHeartbeat() }
            }
            try await rig.round(after: .zero)
            store.close()
            posts.append((post, entry, moment))
            #expect(try await post.step().state == .sent, "\(moment)")
        }
        #expect(try rig.count("SELECT count(*) FROM outbox WHERE kind = 'mail'") == 0)
        #expect(try rig.count("SELECT count(*) FROM outbox WHERE dead_at IS NOT NULL") == 0)
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'mail.settled'") == Int64(Self.rounds))
        #expect(try rig.count("SELECT count(*) FROM relay") == 1)
        let sent = rig.mails.sent
        #expect(Set(sent.map(\.id)) == Set(posts.map(\.entry)))
        for (_, entry, moment) in posts {
            let times = sent.filter { $0.id == entry }
            // Sent twice if the relay died after it sent and before it recorded the outcome.
            let expected = [.afterItSent, .beforeItSettles].contains(moment) ? 2 : 1
            #expect(times.count == expected && Set(times.compactMap(\.code)).count == 1, "\(moment): \(times.count)")
        }
    }
}

/// The life of a relay. When it is over, the relay no longer reaches the store or the mail server.
private final class Life: Sendable {
    private let moment: DyingRelayTests.Moment
    private let ended = Mutex(false)

    init(until moment: DyingRelayTests.Moment) { self.moment = moment }

    var isOver: Bool { ended.withLock { $0 } }
    private func end() { ended.withLock { $0 = true } }

    func store(at url: StorageURL) throws -> Store {
        try Store.watched(at: url) {
            [self] (steps, session) throws(SessionFailure) in
            let leases = steps.contains { $0.statement.sql.contains("SET holder = :relay, lease = :lease") }
            let settles = steps.contains { $0.values.contains(.text("mail.settled")) }
            if leases, moment == .beforeItsClaim { end() }
            if settles, moment == .beforeItSettles { end() }
            if isOver { throw .refused("dead") }
            let rows = try session.run(steps)
            // The script was committed: the death comes after it.
            if leases, moment == .afterItsClaim { end() }
            if settles, moment == .afterItSettled { end() }
            return rows
        }
    }

    func courier(before other: RecordedMessages) -> any MessageCourier { Courier(life: self, other: other) }

    private struct Courier: MessageCourier {
        let life: Life
        let other: RecordedMessages

        func send(_ message: Message) async -> DeliveryOutcome {
            if life.moment == .beforeItSends { life.end() }
            guard !life.isOver else { return .ambiguous("dead") }
            let outcome = await other.send(message)
            if life.moment == .afterItSent { life.end() }
            return outcome
        }
    }
}
