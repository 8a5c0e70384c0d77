import DeliveryOutcomes
import Domain
import Log
import TestSupport
import Testing
import World

@testable import Relay

/// A relay that stood still during an attempt, and was declared dead by another relay. The outcome of its attempt
/// changes nothing any more, and its log does not claim otherwise.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct HaltedRelayTests {
    enum Meanwhile: CaseIterable {
        /// Another relay has leased the entry, or has settled it.
        case taken, done
        /// The entry was released, and no relay has leased it yet.
        case freed

        func happen(to kind: String, _ rig: RelayRig) throws {
            switch self {
            case .taken:
                let now = rig.time.now()
                try rig.execute(
                    "INSERT INTO relay (id, beat, started_at) VALUES (\(HaltedRelayTests.other), 0, '\(now.sql)')")
                try rig.execute(
                    """
                    UPDATE outbox SET holder = \(HaltedRelayTests.other), lease = \(HaltedRelayTests.other),
                    due_at = '\((now + .seconds(15)).sql)' WHERE kind = '\(kind)'
                    """)
            case .done: try rig.execute("DELETE FROM outbox WHERE kind = '\(kind)'")
            case .freed: try rig.execute("UPDATE outbox SET holder = NULL, lease = NULL WHERE kind = '\(kind)'")
            }
        }

        /// Checks the log lines of the attempt, and whether the entry is another relay's.
        func check(_ kind: String, _ rig: RelayRig) throws {
            let lines = rig.sink.drain()
            func count(_ event: String) -> Int { lines.count { $0.contains("event=\(kind).\(event) ") } }
            let isOurs = self == .freed
            #expect(count("postponed") == (isOurs ? 1 : 0), "\(self)")
            #expect(count("overtaken") == (isOurs ? 0 : 1), "\(self)")
            let held = "SELECT count(*) FROM outbox WHERE kind = '\(kind)' AND holder = \(HaltedRelayTests.other)"
            #expect(try rig.count(held) == (self == .taken ? 1 : 0))
            let unleased = "SELECT count(*) FROM outbox WHERE kind = '\(kind)' AND holder IS NULL"
            #expect(try rig.count(unleased) == (isOurs ? 1 : 0))
        }
    }

    private static let other = "x'0000000000000000000000000000000b'"

    @Test(arguments: StoreKind.all, Meanwhile.allCases)
    func pushLeasedByAnotherRelayIsNotRescheduled(kind: StoreKind, meanwhile: Meanwhile) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        let (user, _, _) = try await rig.enrolled("ada", at: shop)
        rig.pushes.answer(.ambiguous("no answer in time"))
        rig.pushes.hold()
        _ = try await rig.on { relay in
            try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
        }
        _ = await rig.pushes.next()
        try meanwhile.happen(to: "push", rig)
        rig.pushes.release()
        await rig.settled()
        try meanwhile.check("push", rig)
    }

    @Test(arguments: StoreKind.all, Meanwhile.allCases)
    func mailLeasedByAnotherRelayIsNotRescheduled(kind: StoreKind, meanwhile: Meanwhile) async throws {
        let post = try await CodeMessageFixture(kind)
        post.messages.answer(.ambiguous("no answer in time"))
        post.messages.hold()
        let entry = try await post.write()
        try await post.rig.on { relay in relay.startDelivery(entry) }
        _ = await post.messages.next()
        try meanwhile.happen(to: "mail", post.rig)
        post.messages.release()
        await post.rig.settled()
        try meanwhile.check("mail", post.rig)
    }
}
