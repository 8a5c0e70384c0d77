import Bytes
import Domain
import TestSupport
import Testing
import World

@testable import Relay
@testable import Storage

/// The event `login.decided`: every end of a login notifies its website, with one outbox entry that is written
/// together with the end.
struct LoginDecidedTests {
    private static let setWebhookURL = Statement(
        "UPDATE website SET webhook_url = 'https://shop.example/hook' WHERE id = :website")
    private static let markApproval = Statement("UPDATE challenge SET approves = x'01' WHERE id = :challenge")
    private static let lock = Statement("UPDATE user SET state = 'locked' WHERE id = :user")
    private static let readEvents = Statement(
        """
        SELECT event, ordinal, challenge_id, id, website_id, created_at, expires_at, webhook_due_at, due_at FROM outbox
        WHERE kind = 'webhook' AND user_id = :user
        """)

    /// An event for the website, and its challenge. In the sample, the challenge of a user has the user's number.
    private struct Event: Hashable, Sendable {
        let event: String
        let place: Int64
        let challenge: Int?

        static func decided(_ challenge: Int) -> Event { Event(event: "login.decided", place: 0, challenge: challenge) }
    }

    private struct End: Sendable, CustomStringConvertible {
        let description: String
        var isRepeatable = true
        /// The events that the website of the user with this number gets in total.
        let events: @Sendable (Int) -> Set<Event>
        /// Ends the challenge of the user with this number.
        let run: @Sendable (Int, Store, Domain.Operation) async throws -> Void
    }

    private static func credential(_ number: Int) -> PhoneCredential {
        PhoneCredential(
            id: Sample.id(number), user: Sample.id(number), key: Sample.key(number), publicKey: [],
            website: WebsiteRow(id: Sample.website, name: "shop", displayName: "Shop", policy: "{}"), failures: 0,
            failedAt: nil, isCertified: true)
    }

    private static func close(
        _ number: Int, _ store: Store, _ operation: Domain.Operation, _ state: ChallengeLife.State,
        _ decision: Decision? = nil, _ reason: Reason? = nil, isByPhone: Bool = false, code: UsedCode? = nil,
        at now: Timestamp = Sample.now
    ) async throws {
        let life = ChallengeLife(state: state, decision: decision, reason: reason, expiresAt: Sample.later)
        let closed = try await store.close(
            ChallengeEnd(
                challenge: Sample.id(number), life: life, device: isByPhone ? credential(number) : nil, code: code,
                guesses: 1, event: "challenge.ended", at: now), as: operation)
        #expect(closed != nil)
    }

    private static let ends = [
        End(description: "a phone's yes") {
            [.decided($0)]
        } run: {
            try await close($0, $1, $2, .answered, .approve, isByPhone: true)
        },
        End(description: "a phone's no") {
            [.decided($0)]
        } run: {
            try await close($0, $1, $2, .answered, .deny, isByPhone: true)
        },
        End(description: "its website") {
            [.decided($0)]
        } run: {
            try await close($0, $1, $2, .cancelled, nil, .cancelled)
        },
        End(description: "its time") {
            [.decided($0)]
        } run: {
            try await close($0, $1, $2, .expired, nil, .expired, at: Sample.later)
        },
        End(description: "a code") {
            [.decided($0)]
        } run: { number, store, operation in
            let code = UsedCode(
                user: Sample.id(number), factor: Sample.id(number), failures: 0, kind: .own(counter: 0, becomes: 1))
            try await close(number, store, operation, .answered, .approve, code: code)
        },
        End(description: "a wrong number") {
            [.decided($0), Event(event: "user.locked", place: 1, challenge: $0)]
        } run: {
            try await close($0, $1, $2, .failed, nil, .wrongNumber, isByPhone: true)
        },
        End(description: "a phone's fraud") {
            [.decided($0), Event(event: "user.frozen", place: 1, challenge: $0)]
        } run: {
            try await close($0, $1, $2, .answered, .fraud, .fraud, isByPhone: true)
        },
        End(description: "a wrong code") {
            [Event(event: "codes.locked", place: 1, challenge: $0)]
        } run: { number, store, operation in
            let factors = try await store.factors(of: Sample.id(number), at: Sample.now).filter { $0.state == .active }
            let wrong = WrongCode(
                user: Sample.id(number), factors: factors, challenge: Sample.id(number), before: .none,
                guesses: 1, at: Sample.now)
            _ = try await store.countWrong(wrong, as: operation)
        },
        End(description: "a wrong code under a policy that permits no other") {
            [.decided($0)]
        } run: { number, store, operation in
            let factors = try await store.factors(of: Sample.id(number), at: Sample.now).filter { $0.state == .active }
            let life = ChallengeLife(state: .failed, decision: nil, reason: .wrongCode, expiresAt: Sample.later)
            let end = ChallengeEnd(
                challenge: Sample.id(number), life: life, event: "challenge.ended", at: Sample.now)
            let wrong = WrongCode(
                user: Sample.id(number), factors: factors, challenge: Sample.id(number), before: .none,
                guesses: 10, end: end, at: Sample.now)
            _ = try await store.countWrong(wrong, as: operation)
        },
        End(description: "an operator") {
            [.decided($0), Event(event: "user.locked", place: 1, challenge: nil)]
        } run: { number, store, operation in
            _ = try await store.run(Locks.lock(Sample.id(number), at: Sample.now, as: operation))
        },
        End(description: "the unbinding of its phone") {
            [.decided($0), Event(event: "device.unbound", place: 1, challenge: nil)]
        } run: { number, store, operation in
            let mark = markApproval(challenge: .id(Sample.id(number) as ChallengeID))
            _ = try await store.run(Script("mark", writes: [mark]))
            var change = DeviceChange(Sample.id(number), of: Sample.id(number), by: .website, at: Sample.now)
            change.state = .revoked
            _ = try await store.change(change, as: operation)
        },
        End(description: "another login", isRepeatable: false) {
            [.decided($0)]
        } run: { number, store, operation in
            let new = Sample.asked(number + 9000, of: number)
            _ = try await store.ask(new, within: Sample.limits, as: operation)
        },
        // The new challenge has ended from the beginning, and is reported too.
        End(description: "the login of a locked user", isRepeatable: false) {
            [.decided($0), .decided($0 + 9000)]
        } run: { number, store, operation in
            _ = try await store.run(
                Script("lock", writes: [lock(user: .id(Sample.id(number) as UserID))]))
            let new = Sample.asked(number + 9000, of: number)
            _ = try await store.ask(new, within: Sample.limits, as: operation)
        },
        // About a login that has already ended otherwise, while the next one is open.
        End(description: "a report of fraud", isRepeatable: false) {
            [.decided($0), .decided($0 + 9000), Event(event: "user.frozen", place: 1, challenge: $0)]
        } run: { number, store, operation in
            let operations = Operations(
                masterKey: Secret([UInt8](repeating: 1, count: 32)), randomness: SystemRandomness())
            try await close(number, store, operations.new(), .answered, .deny, isByPhone: true)
            let new = Sample.asked(number + 9000, of: number)
            _ = try await store.ask(new, within: Sample.limits, as: operations.new())
            let report = LateFraud(challenge: Sample.id(number), phone: credential(number), at: Sample.now)
            #expect(try await store.freeze(report, as: operation) != nil)
        },
    ]

    /// The end of a recovery, which some ends of logins bring, has an event of its own.
    private func deleteRecoveries(_ store: Store) async throws {
        _ = try await store.run(Script("recoveries", writes: [Statement("DELETE FROM recovery")()]))
    }

    private func events(of number: Int, on store: Store) async throws -> [Event] {
        let script = Script("events", reads: [Self.readEvents(user: .id(Sample.id(number) as UserID))])
        return try await store.run(script)[0].map { row in
            let challenge: ChallengeID? = try row.optionalID("challenge_id")
            if try row.integer("ordinal") == 0 { #expect(try row.blob("id") == challenge?.bytes) }
            #expect(try row.blob("website_id") == Sample.website.bytes)
            let at = try row.timestamp("created_at")
            #expect(try row.timestamp("expires_at") == at + WebhookRows.life)
            #expect(try row.timestamp("webhook_due_at") == at)
            #expect(try row.isNull("due_at"))
            let numbers = [number, number + 9000]
            return Event(
                event: try row.text("event"), place: try row.integer("ordinal"),
                challenge: numbers.first { Sample.id($0) == challenge })
        }
    }

    @Test(arguments: Engine.allCases, [true, false])
    func everyEndCreatesOneLoginDecided(_ engine: Engine, hasEndpoint: Bool) async throws {
        let database = try engine.database(Migration.all)
        let store = try database.open()
        defer { store.close() }
        try await Sample.fill(store, at: database.url)
        try await deleteRecoveries(store)
        if hasEndpoint {
            _ = try await store.run(
                Script("webhook URL", writes: [Self.setWebhookURL(website: .id(Sample.website))]))
        }
        let operations = Operations(
            masterKey: Secret([UInt8](repeating: 1, count: 32)), randomness: SystemRandomness())
        for (number, end) in zip(100..., Self.ends) {
            // An operation that the store does not look up before it runs the script.
            let operation = operations.new()
            try await end.run(number, store, operation)
            let expected = hasEndpoint ? end.events(number) : []
            let events = try await events(of: number, on: store)
            #expect(Set(events) == expected && events.count == expected.count, "\(end)")
        }
    }

    /// A change that is repeated under the same operation without a look-up creates no second entry.
    @Test(arguments: Engine.allCases) func repeatedOperationCreatesOneLoginDecided(_ engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        let store = try database.open()
        defer { store.close() }
        try await Sample.fill(store, at: database.url)
        try await deleteRecoveries(store)
        _ = try await store.run(
            Script("webhook URL", writes: [Self.setWebhookURL(website: .id(Sample.website))]))
        let operations = Operations(
            masterKey: Secret([UInt8](repeating: 1, count: 32)), randomness: SystemRandomness())
        for (number, end) in zip(100..., Self.ends.filter(\.isRepeatable)) {
            let operation = operations.new()
            for _ in 0..<2 { try await end.run(number, store, operation) }
            #expect(try await events(of: number, on: store).count == end.events(number).count, "\(end)")
        }
    }

    /// The deletion of a user also deletes the user's events.
    @Test(arguments: Engine.allCases) func deletedUserCreatesNoLoginDecided(_ engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        let store = try database.open()
        defer { store.close() }
        try await Sample.fill(store, at: database.url)
        _ = try await store.run(
            Script("webhook URL", writes: [Self.setWebhookURL(website: .id(Sample.website))]))
        let operations = Operations(
            masterKey: Secret([UInt8](repeating: 1, count: 32)), randomness: SystemRandomness())
        // One user has an open login. The website of the other still has to be notified of an end.
        _ = try await Sample.approve(101, on: store, as: operations.new())
        #expect(try await events(of: 101, on: store).count == 1)
        for number in [100, 101] {
            #expect(try await Sample.forget(number, on: store, as: operations.new()) != nil)
            #expect(try await events(of: number, on: store).isEmpty)
        }
    }
}
