import Bytes
import Domain
import Log
import Synchronization
import TestSupport
import Testing
import World

@testable import Relay
@testable import Storage

/// The short forms of scripts, compared with the guarded ones.
@Suite(.mayBlock) struct ShortFormTests {
    /// Both forms run the same verbs for the same users, in random states, and leave the same rows with the
    /// same signatures.
    @Test(arguments: Engine.allCases, [1, 2]) func bothFormsLeaveTheSameRows(engine: Engine, seed: UInt64) async throws
    {
        let short = try await Shop(engine, isShort: true, seed)
        let guarded = try await Shop(engine, isShort: false, seed)
        let (one, other) = (try await short.runVerbs(), try await guarded.runVerbs())
        #expect(one == other)
        for table in ["user", "challenge", "step", "outbox", "device", "audit"] {
            #expect(try await short.rows(of: table) == guarded.rows(of: table), "\(table)")
        }
        // Both kinds of users occurred.
        #expect(short.watch.asks > 5 && short.watch.closes > 5)
        #expect(short.watch.asks < one.count { $0.hasPrefix("stored") })
        #expect(guarded.watch.asks == 0 && guarded.watch.closes == 0)
        #expect(try await short.forgedRows().isEmpty)
    }

    /// Requests that arrive together run in one transaction.
    @Test(arguments: Engine.allCases) func requestsOfOneUserLeaveOneOpen(engine: Engine) async throws {
        let shop = try await Shop(engine, isShort: true, 1)
        try await shop.change("UPDATE challenge SET state = 'answered', decision = 'deny', decided_at = asked_at")
        let asks = (0..<20).map { Sample.asked(20_000 + $0, of: 7) }
        let operations = asks.map { _ in shop.operation() }
        let stored = try await withThrowingTaskGroup(of: Bool.self) { group in
            for (ask, operation) in zip(asks, operations) {
                group.addTask {
                    let outcome = try await shop.store.ask(ask, within: Self.limits, as: operation)
                    if case .stored = outcome { return true }
                    return false
                }
            }
            return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(stored == 20)
        #expect(try await shop.count("challenge WHERE user_id = (\(Shop.user(7))) AND decided_at IS NULL") == 1)
        #expect(
            try await shop.count("user u JOIN challenge c ON c.id = u.challenge_id WHERE c.decided_at IS NULL") == 1)
        #expect(try await shop.forgedRows().isEmpty)
    }

    /// Somebody changes a row between the reading and the writes, in spite of the lock.
    @Test(arguments: Engine.allCases) func changedRowMakesTheGuardedFormRun(engine: Engine) async throws {
        let shop = try await Shop(engine, isShort: true, 1)
        let approval = Sample.approval(of: 7, by: 7)
        shop.watch.beforeClose.withLock { $0 = "UPDATE device SET failures = 1 WHERE id = (\(Shop.user(7)))" }
        // The change was undone with the transaction, so the approval counts in the second one.
        #expect(try await shop.store.close(approval, as: shop.operation()) != nil)
        #expect(shop.watch.closes == 1)
        #expect(try await shop.count("challenge WHERE decision = 'approve'") == 1)
        #expect(try await shop.count("device WHERE login_successes = 1") == 1)
        #expect(try await shop.count("audit WHERE event = 'challenge.answered'") == 1)
        #expect(try await shop.forgedRows().isEmpty)
    }

    @Test(arguments: Engine.allCases) func keyIsClaimedOnceAndWithTheAnswer(engine: Engine) async throws {
        let shop = try await Shop(engine, isShort: true, 1)
        try await shop.change("UPDATE challenge SET state = 'answered', decision = 'deny', decided_at = asked_at")
        let first = try await shop.ask(20_007, of: 7, claiming: "key")
        guard case .stored = first else {
            Issue.record("\(first)")
            return
        }
        let kept = "status = 201 AND answer = x'70757368' AND state = 'done'"
        #expect(try await shop.count("idempotency WHERE \(kept)") == 1)
        #expect(try await shop.forgedRows().isEmpty)
        // The same user and another one, and then a user with an open challenge.
        #expect(try await shop.ask(20_107, of: 7, claiming: "key") == .unclaimed)
        #expect(try await shop.ask(20_008, of: 8, claiming: "key") == .unclaimed)
        #expect(try await shop.ask(20_207, of: 7, claiming: "other") == .unclaimed)
        #expect(try await shop.count("challenge WHERE decided_at IS NULL") == 1)
        #expect(try await shop.count("idempotency WHERE \(kept)") == 1)
    }

    /// A guarded script signs rows again, in the batch in which short forms change them.
    @Test(arguments: Engine.allCases) func rowsThatAreSignedAgainKeepTheirSignatures(engine: Engine) async throws {
        let shop = try await Shop(engine, isShort: true, 1)
        try await shop.change("UPDATE challenge SET state = 'answered', decision = 'deny', decided_at = asked_at")
        for user in 1...20 {
            _ = try await shop.store.ask(
                Sample.asked(20_000 + user, of: user), within: Self.limits, as: shop.operation())
        }
        try shop.rotateKey()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for user in 1...40 {
                let operation = shop.operation()
                group.addTask { try await shop.signAgain(user, challenge: 20_000 + user) }
                group.addTask {
                    if user <= 20 {
                        let approval = Sample.approval(of: 20_000 + user, by: user)
                        #expect(try await shop.store.close(approval, as: operation) != nil)
                    } else {
                        let ask = Sample.asked(20_000 + user, of: user)
                        _ = try await shop.store.ask(ask, within: Self.limits, as: operation)
                    }
                }
                group.addTask { try await shop.signAgain(user, challenge: 20_000 + user) }
            }
            try await group.waitForAll()
        }
        #expect(try await shop.forgedRows() == [])
        #expect(try await shop.count("challenge WHERE decision = 'approve'") == 20)
    }

    /// The other requests with the key learn that it is claimed, and harm nobody.
    @Test(arguments: Engine.allCases) func requestsUnderOneKeyAreClaimedOnce(engine: Engine) async throws {
        let shop = try await Shop(engine, isShort: true, 1)
        try await shop.change("UPDATE challenge SET state = 'answered', decision = 'deny', decided_at = asked_at")
        let outcomes = try await withThrowingTaskGroup(of: AskOutcome.self) { group in
            for user in 1...20 {
                group.addTask { try await shop.ask(20_000 + user, of: user, claiming: "key") }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes.count { $0 == .unclaimed } == 19)
        #expect(try await shop.count("challenge WHERE decided_at IS NULL") == 1)
    }

    /// The COMMIT of a claim happened, but its answer was lost.
    @Test(arguments: Engine.allCases) func claimWithALostAnswerIsFound(engine: Engine) async throws {
        let shop = try await Shop(engine, isShort: true, 1)
        try await shop.change("UPDATE challenge SET state = 'answered', decision = 'deny', decided_at = asked_at")
        shop.watch.losesAnswer.withLock { $0 = true }
        let outcome = try await shop.ask(20_007, of: 7, claiming: "key")
        guard case .stored(let stored) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(stored.factor == .push && stored.pushes.count == 1)
        #expect(try await shop.count("challenge WHERE decided_at IS NULL") == 1)
        #expect(try await shop.count("idempotency WHERE state = 'done'") == 1)
    }

    @Test(arguments: Engine.allCases) func forgedRowIsReportedAndStopsOnlyItsScript(engine: Engine) async throws {
        let shop = try await Shop(engine, isShort: true, 1)
        try await shop.change("UPDATE challenge SET state = 'answered', decision = 'deny', decided_at = asked_at")
        try await shop.change("UPDATE user SET email = 'eve@example.com' WHERE id = (\(Shop.user(7)))", adopting: false)
        let operations = [shop.operation(), shop.operation()]
        let outcomes = await withTaskGroup(of: (Int, AskOutcome?).self) { group in
            for (user, operation) in zip([7, 8], operations) {
                group.addTask {
                    let ask = Sample.asked(20_000 + user, of: user)
                    return (user, try? await shop.store.ask(ask, within: Self.limits, as: operation))
                }
            }
            return await group.reduce(into: [Int: AskOutcome]()) { $0[$1.0] = $1.1 }
        }
        #expect(Array(outcomes.keys) == [8])
        #expect(try await shop.count("challenge WHERE decided_at IS NULL") == 1)
    }

    private static let limits = AskLimits(since: Sample.now - .seconds(300), logins: 50, pushes: 50)
}

/// The short forms that a store has run.
private final class FormWatch: Sendable {
    private let counts = Mutex((asks: 0, closes: 0))
    /// A statement that runs once before the writes of the next short end.
    let beforeClose = Mutex<String?>(nil)
    /// Whether the answer to the next COMMIT is lost.
    let losesAnswer = Mutex(false)

    func commit(on session: any Session) throws(SessionFailure) {
        try session.commit()
        let isLost = losesAnswer.withLock { isLost in
            defer { isLost = false }
            return isLost
        }
        if isLost { throw .lost("the answer was lost") }
    }

    var asks: Int { counts.withLock { $0.asks } }
    var closes: Int { counts.withLock { $0.closes } }

    func run(_ steps: [BoundStatement], on session: any Session) throws(SessionFailure) -> [Rows] {
        let asks = Self.count("UPDATE user", in: steps)
        let closes = Self.count("UPDATE challenge", in: steps)
        counts.withLock { $0 = ($0.asks + asks, $0.closes + closes) }
        if closes > 0, let change = beforeClose.withLock({ $0.take() }) { try session.execute(change) }
        return try session.run(steps)
    }

    /// Counts the updates of a table that short forms make: they name the MAC that they have seen.
    private static func count(_ update: String, in steps: [BoundStatement]) -> Int {
        steps.count { $0.statement.sql.hasPrefix(update) && $0.statement.sql.contains("mac = :seen") }
    }
}

/// A store with the sample's users, whose rows are signed, and the verbs that run on it.
private final class Shop: Sendable {
    let store: Store
    let watch = FormWatch()
    private let database: TestDatabase
    private let operations: Operations
    private let chance: SeededRandomness

    init(_ engine: Engine, isShort: Bool, _ seed: UInt64) async throws {
        database = try engine.database(Migration.all)
        chance = SeededRandomness(seed: seed)
        operations = Operations(
            masterKey: Secret([UInt8](repeating: 1, count: 32)), randomness: SeededRandomness(seed: seed),
            time: TestTime())
        var options = StoreOptions.patient
        options.rows = try RowAuthenticator(keys: [RowAuthenticator.Key(id: "1", secret: Secret(utf8: "secret"))])
        options.usesShortForms = isShort
        store = try Store.open(
            database.url, schema: .migrate, migrations: Migration.all, time: SystemTime(),
            log: Log(sink: database.sink), options: options,
            watch: { [watch] session in
                ObservedSession(
                    session,
                    run: { (steps, session) throws(SessionFailure) in try watch.run(steps, on: session) },
                    commit: { (session) throws(SessionFailure) in try watch.commit(on: session) })
            })
        // Every row is signed, and no test needs large tables.
        try await Sample.fill(store, at: database.url, users: 80)
        _ = try await store.run(Script("adopt", rows: SignedRows.everythingAdopted))
    }

    deinit { store.close() }

    func operation() -> Domain.Operation { operations.new() }

    /// The id of a user in SQL. In the sample, the user's phone and challenge have the same id.
    static func user(_ number: Int) -> String { "SELECT u.id FROM user u WHERE u.username = 'user-\(number)'" }

    /// Changes the store as an operator does, who adopts the changed rows or leaves them forged.
    func change(_ sql: String, adopting: Bool = true) async throws {
        _ = try await store.run(Script("change", writes: [Statement(sql)()]))
        if adopting { _ = try await store.run(Script("adopt", rows: SignedRows.everythingAdopted)) }
    }

    func count(_ rows: String) async throws -> Int64 {
        try await store.run(Script("count", reads: [Statement("SELECT count(*) AS n FROM \(rows)")()]))[0][0].integer(
            "n")
    }

    /// The rows that a check does not find genuine.
    func forgedRows() async throws -> [String] {
        let authenticator = try #require(store.rowAuthenticator)
        var forged: [String] = []
        for rows in SignedRows.everythingAdopted {
            let found = try await store.run(Script("rows", reads: [rows.reading(for: .reading)]))[0]
            for row in found {
                let row = try CheckedRow(row, of: rows.search.table)
                if !row.isGenuine(authenticator) { forged.append(row.name) }
            }
        }
        return forged
    }

    /// All columns of a table that do not depend on the writer of the audit.
    func rows(of table: String) async throws -> [String] {
        let columns =
            table == "audit"
            ? "operation, at, event, website_id, user_id, challenge_id, device_id, outcome, proof, repeated" : "*"
        let found = try await store.run(Script("rows", reads: [Statement("SELECT \(columns) FROM \(table)")()]))[0]
        return found.map { "\($0.members)" }.sorted()
    }
}

extension Shop {
    func rotateKey() throws {
        store.use(
            try RowAuthenticator(keys: [
                RowAuthenticator.Key(id: "2", secret: Secret(utf8: "new")),
                RowAuthenticator.Key(id: "1", secret: Secret(utf8: "secret")),
            ]))
    }

    /// Signs rows of a user again, as the relay does after a new master key.
    func signAgain(_ user: Int, challenge: Int) async throws {
        let rows: [SignedRows] = [
            .user(Sample.id(user) as UserID), .challenge(Sample.id(challenge)), .device(Sample.id(user) as DeviceID),
        ]
        _ = try await store.run(Script("sign again", rows: rows.map(\.lenient)))
    }

    /// Asks a user with a request under an idempotency key, whose answer is the name of the factor.
    func ask(_ number: Int, of user: Int, claiming key: String) async throws -> AskOutcome {
        let claim = IdempotencyClaim(
            request: IdempotentRequest(website: Sample.website, route: "/login", key: key, content: []),
            createdAt: Sample.now
        ) { factor in
            StoredResponse(state: .done, status: 201, sealed: Array((factor?.rawValue ?? "").utf8))
        }
        let limits = AskLimits(since: Sample.now - .seconds(300), logins: 50, pushes: 50)
        return try await store.ask(
            Sample.asked(number, of: user), within: limits, claiming: claim, as: operation())
    }
}

// MARK: Random states and verbs

extension Shop {
    /// The users with whom the verbs run.
    private static let users = 1...60

    /// Changes that make a case unusual, or usual: one of each list for each user.
    private static let states = [
        [
            "UPDATE challenge SET state = 'answered', decision = 'deny', decided_at = asked_at WHERE user_id = (USER)",
            "UPDATE challenge SET state = 'answered', decision = 'deny', decided_at = asked_at WHERE user_id = (USER)",
            "UPDATE challenge SET expires_at = asked_at WHERE user_id = (USER)",
            "UPDATE challenge SET known = 1 WHERE user_id = (USER)", nil, nil, nil,
        ],
        [
            "UPDATE user SET state = 'locked' WHERE username = 'NAME'",
            "UPDATE user SET state = 'frozen' WHERE username = 'NAME'",
            "UPDATE user SET expires_at = '2020-01-01 00:00:00.000' WHERE username = 'NAME'",
            "UPDATE user SET expires_at = '2099-01-01 00:00:00.000' WHERE username = 'NAME'", nil, nil, nil, nil, nil,
            nil,
            nil, nil,
        ],
        [
            "UPDATE device SET state = 'suspended' WHERE user_id = (USER)",
            "UPDATE device SET failures = 1 WHERE user_id = (USER)",
            "UPDATE challenge SET number = '42' WHERE user_id = (USER)",
            "UPDATE step SET state = 'seen' WHERE challenge_id IN (SELECT c.id FROM challenge c WHERE c.user_id = (USER))",
            "UPDATE step SET factor = 'totp' WHERE challenge_id IN (SELECT c.id FROM challenge c WHERE c.user_id = (USER))",
            "DELETE FROM outbox WHERE challenge_id IN (SELECT c.id FROM challenge c WHERE c.user_id = (USER))",
            nil, nil, nil,
        ],
    ]

    /// Brings the users into random states, runs random verbs, and returns their outcomes.
    func runVerbs() async throws -> [String] {
        if pick(below: 2) == 0 {
            try await change("UPDATE website SET webhook_url = 'https://shop.example/hook'", adopting: false)
        }
        for number in Self.users {
            for choices in Self.states {
                guard let sql = choices[pick(below: choices.count)] else { continue }
                let named = sql.split(separator: "USER").joined(separator: Self.user(number))
                try await change(
                    named.split(separator: "NAME").joined(separator: "user-\(number)"), adopting: false)
            }
        }
        try await change("DELETE FROM sent_code")
        var outcomes: [String] = []
        for number in Self.users {
            for round in 1...(1 + pick(below: 3)) {
                let ask = number + 20_000 + round * 100
                switch pick(below: 4) {
                case 0: outcomes.append("closed: \(String(describing: try await close(number, number)))")
                case 1:
                    outcomes.append("\(try await self.ask(ask, of: number))")
                    outcomes.append("closed: \(String(describing: try await close(ask, number)))")
                default: outcomes.append("\(try await self.ask(ask, of: number))")
                }
            }
        }
        return outcomes
    }

    private func pick(below limit: Int) -> Int { Int(chance.number(below: UInt64(limit))) }

    private func ask(_ number: Int, of user: Int) async throws -> AskOutcome {
        let origins = [AskOrigin.reminder, .unknownBrowser, .unknownBrowser, .knownBrowser]
        let limits = AskLimits(
            since: Sample.now - .seconds(300), logins: 1 + pick(below: 3), pushes: pick(below: 3),
            origin: origins[pick(below: origins.count)])
        let pushes = pick(below: 3) > 0
        return try await store.ask(
            Sample.asked(number, of: user, isPushed: pushes), within: limits, as: operation())
    }

    private func close(_ challenge: Int, _ user: Int) async throws -> ChallengeEndResult? {
        var end = Sample.approval(of: challenge, by: user, as: [Factor.push, .push, .pull][pick(below: 3)])
        if pick(below: 4) == 0 { end.isApproval = true }
        return try await store.close(end, as: operation())
    }
}
