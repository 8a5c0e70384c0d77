import Domain
import Relay
import TestSupport
import Testing
import World

@testable import Storage

/// The deletion of rows that are no longer needed, whatever their number: a few at a time, by one
/// relay.
@Suite(.mayBlock) struct RetentionTests {
    fileprivate static let now = Timestamp(seconds: 1_800_000_000)
    private static let old = now - .milliseconds(1)
    private static let relay: RelayID = Sample.id(1)
    private static let other: RelayID = Sample.id(2)

    private func withTables(_ engine: Engine, _ body: (Store) async throws -> Void) async throws {
        let database = try engine.database(Migration.all)
        defer { withExtendedLifetime(database) {} }
        let store = try database.open()
        defer { store.close() }
        try await body(store)
    }

    /// Deletes until nothing is left to delete, and returns the number of rows of each transaction.
    @discardableResult private func deleteRows(_ kind: ExpiredRows.Kind, in store: Store) async throws -> [Int] {
        var counts: [Int] = []
        var mark: Int64 = 0
        while true {
            let dropped = try #require(
                try await store.drop(ExpiredRows(kind, before: Self.now, mark: mark), by: Self.relay))
            counts.append(dropped.count)
            mark = dropped.mark
            if dropped.isLast { return counts }
        }
    }

    private func count(_ table: String, in store: Store) async throws -> Int64 {
        let count = Statement("SELECT count(*) AS count FROM \(table)")
        return try await store.run(Script("left", reads: [count()])).row(0).integer("count")
    }

    // MARK: The kinds of rows

    @Test(arguments: Engine.allCases, ExpiredRows.Kind.allCases)
    func onlyExpiredRowsAreDeleted(engine: Engine, kind: ExpiredRows.Kind) async throws {
        try await withTables(engine) { store in
            // More rows than one transaction may delete.
            let rows = (0..<1103).flatMap { Old.rows(kind, $0, at: $0 < 1100 ? Self.old : Self.now) }
            _ = try await store.run(Script("fill", writes: rows))
            let counts = try await deleteRows(kind, in: store)
            #expect(counts.reduce(0, +) == 1100)
            #expect(counts.allSatisfy { $0 <= 500 } && counts.count >= 3)
            for table in Old.tables(kind) { #expect(try await count(table, in: store) == 3, "\(table)") }
            #expect(try await deleteRows(kind, in: store).reduce(0, +) == 0)
        }
    }

    /// The next id is derived from its id, and other relays know its id.
    @Test(arguments: Engine.allCases) func newestAuditRowIsKept(engine: Engine) async throws {
        try await withTables(engine) { store in
            let rows = (0..<5).flatMap { Old.rows(.audit, $0, at: Self.old) }
            _ = try await store.run(Script("fill", writes: rows))
            let newest = try await store.newestChange()
            #expect(try await deleteRows(.audit, in: store) == [4])
            #expect(try await count("audit", in: store) == 1)
            #expect(try await store.newestChange() == newest)
            _ = try await store.run(Script("next", writes: Old.rows(.audit, 9, at: Self.now)))
            #expect(try await store.newestChange() > newest)
        }
    }

    /// A relay's clock was ahead. The row that it wrote stays, but does not keep later rows.
    @Test(arguments: Engine.allCases) func youngAuditRowKeepsNoOlderOne(engine: Engine) async throws {
        try await withTables(engine) { store in
            let rows = (0..<600).flatMap { Old.rows(.audit, $0, at: $0 % 2 == 0 ? Self.now : Self.old) }
            _ = try await store.run(Script("fill", writes: rows))
            #expect(try await deleteRows(.audit, in: store).reduce(0, +) == 299)
            #expect(try await count("audit", in: store) == 301)
        }
    }

    /// The search and the deletion are two transactions. An operator's command may come between
    /// them.
    @Test(arguments: [Engine.file, .mariadb], [ExpiredRows.Kind.dead, .webhooks])
    func replayedEntryIsKept(engine: Engine, kind: ExpiredRows.Kind) async throws {
        let database = try engine.database(Migration.all)
        defer { withExtendedLifetime(database) {} }
        let store = try database.open()
        _ = try await store.run(Script("fill", writes: (0..<3).flatMap { Old.rows(kind, $0, at: Self.old) }))
        store.close()
        let id = SQLValue.id(Sample.id(1) as OutboxEntryID)
        let replay = (kind == .dead ? Old.replay : Old.replayWebhook)(
            dueAt: .timestamp(Self.now), expiresAt: .timestamp(Self.now + .seconds(60)), entry: id)
        let watched = try Store.watched(at: database.url) { (steps, session) throws(SessionFailure) in
            if steps.contains(where: { $0.statement.sql.hasPrefix("DELETE FROM outbox") }) {
                _ = try session.run([replay])
            }
            return try session.run(steps)
        }
        defer { watched.close() }
        try await deleteRows(kind, in: watched)
        let left = try await watched.run(Script("left", reads: [Statement("SELECT id FROM outbox")()]))
        #expect(try left[0].map { try $0.value("id") } == [id])
    }

    // MARK: Challenges that stay

    @Test(arguments: Engine.allCases) func referencedRowsAreKept(engine: Engine) async throws {
        try await withTables(engine) { store in
            let id = { (number: Int) in SQLValue.id(Sample.id(number) as ChallengeID) }
            _ = try await store.run(
                Script(
                    "fill",
                    writes: (0..<6).flatMap { Old.rows(.challenges, $0, at: Self.old) } + [
                        // Challenge 1 is open, an outbox entry names the next one, and a phone and
                        // a factor wait for the others.
                        Old.reopen(challenge: id(1)), Old.notify(entry: id(1), challenge: id(2)),
                        Old.device(
                            device: id(1), user: id(3), state: .text("waiting"), at: .timestamp(Self.old),
                            operation: id(1), approval: id(3)),
                        Old.factor(
                            factor: id(1), user: id(4), state: .text("waiting"), at: .timestamp(Self.old),
                            operation: id(1), approval: id(4)),
                        // Phones and factors that are bound no longer need their challenge.
                        Old.device(
                            device: id(2), user: id(5), state: .text("active"), at: .timestamp(Self.old),
                            operation: id(2), approval: id(5)),
                        Old.factor(
                            factor: id(2), user: id(5), state: .text("active"), at: .timestamp(Self.old),
                            operation: id(2), approval: id(5)),
                    ]))
            #expect(try await deleteRows(.challenges, in: store) == [2])
            let left = Statement("SELECT id FROM challenge ORDER BY id")
            let rows = try await store.run(Script("left", reads: [left()]))
            #expect(try rows[0].map { try $0.value("id") } == (1...4).map(id))
            #expect(try await count("step", in: store) == 4)
            _ = try await store.run(Script("delivered", writes: [Statement("DELETE FROM outbox")()]))
            #expect(try await deleteRows(.challenges, in: store) == [1])
        }
    }

    /// Rows that must stay do not stop the search, even if there are many of the same time: it
    /// ends, and reaches the rows after them.
    @Test(arguments: Engine.allCases) func keptRowsAreSkipped(engine: Engine) async throws {
        try await withTables(engine) { store in
            let first = Self.old - .seconds(10)
            let stay = (1...1200).flatMap {
                Old.rows(.challenges, $0, at: $0 <= 700 ? first : first + .milliseconds(Int64($0)))
            }
            let open = Statement("UPDATE challenge SET decided_at = NULL")()
            let go = (1201...1300).flatMap { Old.rows(.challenges, $0, at: Self.old) }
            _ = try await store.run(Script("fill", writes: stay + [open] + go))
            #expect(try await deleteRows(.challenges, in: store).reduce(0, +) == 100)
            #expect(try await count("challenge", in: store) == 1200)
        }
    }

    // MARK: By one relay

    @Test(arguments: Engine.allCases) func oneRelayHoldsTheRetentionLease(engine: Engine) async throws {
        try await withTables(engine) { store in
            let rubbish = ExpiredRows(.answers, before: Self.now)
            func drop(_ relay: RelayID) async throws -> Int? { try await store.drop(rubbish, by: relay)?.count }
            func fill(_ number: Int) async throws {
                _ = try await store.run(Script("fill", writes: Old.rows(.answers, number, at: Self.old)))
            }
            for relay in [Self.relay, Self.other] { _ = try await store.sendHeartbeat(relay, at: Self.now) }
            try await fill(1)
            #expect(try await drop(Self.relay) == 1)
            try await fill(2)
            #expect(try await drop(Self.other) == nil)
            #expect(try await count("idempotency", in: store) == 1)
            // A relay that stops or is declared dead loses the lease.
            try await store.removeDeadRelay(Self.relay, at: nil, now: Self.now)
            #expect(try await drop(Self.other) == 1)
            _ = try await store.sendHeartbeat(Self.relay, at: Self.now)
            try await fill(3)
            #expect(try await drop(Self.relay) == nil)
            // So does a relay that has no row.
            _ = try await store.run(
                Script("gone", writes: [Statement("DELETE FROM relay WHERE id = :relay")(relay: .id(Self.other))]))
            #expect(try await drop(Self.relay) == 1)
        }
    }

    @Test func concurrentRelaysGetOneRetentionLease() async throws {
        let two = try await TwoRelays()
        defer { withExtendedLifetime(two) {} }
        let (one, other) = (two.first, two.second)
        for relay in [Self.relay, Self.other] { _ = try await one.sendHeartbeat(relay, at: Self.now) }
        for _ in 0..<20 {
            _ = try await one.run(
                Script("free", writes: [Statement("UPDATE task_lease SET holder = NULL")()]))
            async let first = one.drop(ExpiredRows(.answers, before: Self.old), by: Self.relay)
            async let second = other.drop(ExpiredRows(.answers, before: Self.old), by: Self.other)
            #expect(try await [first, second].count { $0 != nil } == 1)
        }
    }
}

/// Rows that have expired, or will expire, by kind.
private enum Old {
    static func tables(_ kind: ExpiredRows.Kind) -> [String] {
        switch kind {
        case .answers: ["idempotency"]
        case .secrets: ["operation_secret"]
        case .smsUsage: ["sms_usage"]
        case .usage: ["website_usage"]
        case .dead, .webhooks: ["outbox"]
        case .activations: ["activation"]
        case .codes: ["sent_code"]
        case .temporary: ["temporary_code", "factor"]
        case .challenges: ["challenge", "step", "sent_code"]
        case .notices: ["notice"]
        case .certificates: ["certificate"]
        case .websiteCertificates: ["website_certificate"]
        case .recoveries: ["recovery"]
        case .audit: ["audit"]
        }
    }

    static func rows(_ kind: ExpiredRows.Kind, _ number: Int, at moment: Timestamp) -> [BoundStatement] {
        let id = SQLValue.id(Sample.id(number) as ChallengeID)
        let digest = SQLValue.blob(
            [UInt8](repeating: 0, count: 24) + (0..<8).map { UInt8(number >> (56 - $0 * 8) & 255) })
        let at = SQLValue.timestamp(moment)
        switch kind {
        case .answers: return [answer(website: id, digest: digest, fingerprint: digest, operation: id, createdAt: at)]
        case .secrets: return [secret(operation: id, expiresAt: at)]
        case .smsUsage:
            // Of the day before the limit, or of that day.
            let day = moment < RetentionTests.now ? moment - .seconds(86_400) : moment
            return [tally(period: .text(UsageDay(day).text), scope: .text((Sample.id(number) as UserID).text))]
        case .usage:
            let day = moment < RetentionTests.now ? moment - .seconds(86_400) : moment
            return [usage(day: .text(UsageDay(day).text), website: id)]
        case .dead: return [dead(entry: id, deadAt: at)]
        case .webhooks: return [webhook(entry: id, expiresAt: at)]
        case .activations: return [activation(digest: digest, user: id, at: at, operation: id)]
        case .codes: return [code(factor: id, challenge: .null, at: at)]
        case .temporary: return [temporaryFactor(factor: id, at: at), temporary(factor: id, digest: digest, at: at)]
        case .challenges:
            return [
                challenge(
                    challenge: id, website: id, user: id, context: .blob([0x7b, 0x7d]), nonce: id, at: at, operation: id
                ),
                step(challenge: id, at: at),
                code(factor: id, challenge: id, at: at),
            ]
        case .certificates: return [certificate(serial: .text("\(number)"), device: id, at: at)]
        case .websiteCertificates: return [websiteCertificate(serial: .text("\(number)"), website: id, at: at)]
        case .notices: return [notice(notice: id, user: id, at: at, operation: id)]
        case .recoveries: return [recovery(recovery: id, user: id, link: digest, at: at, operation: id)]
        case .audit: return [audit(operation: id, at: at)]
        }
    }

    private static let websiteCertificate = Statement(
        """
        INSERT INTO website_certificate (issuer, serial, thumbprint, website_id, not_before, not_after)
        VALUES (:website, :serial, :website, :website, :at, :at)
        """)
    private static let answer = Statement(
        """
        INSERT INTO idempotency (website_id, digest, fingerprint, state, operation, created_at)
        VALUES (:website, :digest, :fingerprint, 'done', :operation, :createdAt)
        """)
    private static let secret = Statement("INSERT INTO operation_secret VALUES (:operation, x'00', '1', :expiresAt)")
    private static let tally = Statement("INSERT INTO sms_usage VALUES (:period, :scope, 1, 0, 0, 0)")
    private static let usage = Statement("INSERT INTO website_usage VALUES (:day, :website, :website, 1, 0, 0, NULL)")
    private static let dead = Statement(
        "INSERT INTO outbox (id, kind, attempts, dead_at) VALUES (:entry, 'mail', 0, :deadAt)")
    private static let webhook = Statement(
        "INSERT INTO outbox (id, kind, attempts, expires_at) VALUES (:entry, 'webhook', 0, :expiresAt)")
    static let replay = Statement(
        "UPDATE outbox SET dead_at = NULL, attempts = 0, due_at = :dueAt, expires_at = :expiresAt WHERE id = :entry")
    static let replayWebhook = Statement(
        "UPDATE outbox SET dead_at = NULL, webhook_due_at = :dueAt, expires_at = :expiresAt WHERE id = :entry")
    private static let activation = Statement(
        "INSERT INTO activation VALUES (:digest, :user, :at, :at, NULL, NULL, NULL, NULL, :operation, NULL)")
    private static let code = Statement("INSERT INTO sent_code VALUES (:factor, 0, :challenge, :at, :at, NULL)")
    private static let temporaryFactor = Statement(
        """
        INSERT INTO factor (id, user_id, kind, state, algorithm, digits, counter, failures, created_at, operation)
        VALUES (:factor, :factor, 'operator', 'active', 'sha256', 10, 0, 0, :at, :factor)
        """)
    private static let temporary = Statement(
        "INSERT INTO temporary_code VALUES (:factor, :factor, :digest, 1, 1, 0, :at, :at, NULL, :factor, NULL)")
    private static let challenge = Statement(
        """
        INSERT INTO challenge (id, website_id, user_id, state, policy, context, nonce, asked_at, expires_at, decided_at,
        operation) VALUES (:challenge, :website, :user, 'expired', '{}', :context, :nonce, :at, :at, :at, :operation)
        """)
    private static let certificate = Statement(
        "INSERT INTO certificate (serial, device_id, created_at, expires_at, revoked_at, is_on_hold) "
            + "VALUES (:serial, :device, :at, :at, NULL, 0)")
    private static let notice = Statement(
        "INSERT INTO notice VALUES (:notice, :user, 'website', 'Title', 'Text', :at, NULL, :operation, NULL)")
    private static let recovery = Statement(
        """
        INSERT INTO recovery (id, user_id, factor, state, link, address, started_by, created_at, expires_at, operation)
        VALUES (:recovery, :user, 'totp', 'cancelled', :link, 'a@example.com', 'website', :at, :at, :operation)
        """)
    private static let step = Statement("INSERT INTO step VALUES (:challenge, 1, 'push', 'sent', :at, NULL)")
    private static let audit = Statement(
        "INSERT INTO audit (operation, at, event) VALUES (:operation, :at, 'user.registered')")

    static let reopen = Statement("UPDATE challenge SET decided_at = NULL WHERE id = :challenge")
    static let notify = Statement(
        "INSERT INTO outbox (id, kind, challenge_id, attempts) VALUES (:entry, 'webhook', :challenge, 0)")
    static let device = Statement(
        """
        INSERT INTO device (id, user_id, state, platform, environment, push_token, push_token_at, created_at, operation,
        approval, failures)
        VALUES (:device, :user, :state, 'ios', 'production', 'token', :at, :at, :operation, :approval, 0)
        """)
    static let factor = Statement(
        """
        INSERT INTO factor (id, user_id, kind, state, algorithm, digits, counter, failures, created_at, operation, approval)
        VALUES (:factor, :user, 'totp', :state, 'sha1', 6, 0, 0, :at, :operation, :approval)
        """)
}
