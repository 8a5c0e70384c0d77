import Bytes
import Crypto
import Domain
import Storage
import Synchronization
import TestSupport
import Testing
import World

@testable import Relay

private let zeros = String(repeating: "00", count: 16)

/// An attacker who writes to the store after a transaction has checked its rows and before it changes them. SQLite
/// allows no other write in that time.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RowRaceTests {
    /// Returns a store on the same tables. Before its first change, `plant` writes after the check of the rows.
    private func store(of rig: RelayRig, plant: @escaping @Sendable () throws -> Void) throws -> Store {
        let isPlanted = Mutex(false)
        return try Store.watched(at: rig.url, rows: RelayRig.rowAuthenticator()) {
            (steps, session) throws(SessionFailure) in
            let isChange = steps.contains { !$0.statement.sql.hasPrefix("SELECT") }
            let isFirst = isPlanted.withLock { planted in
                defer { planted = planted || isChange }
                return isChange && !planted
            }
            if isFirst {
                do { try plant() } catch { throw .statement("nothing was planted: \(error)") }
            }
            return try session.run(steps)
        }
    }

    private func isSigned(_ table: String, _ rig: RelayRig) async throws -> Bool {
        try await !rig.notGenuine().contains { $0.hasPrefix("\(table) ") }
    }

    /// A signed row would make the relay continue the attacker's operation.
    @Test func idempotencyRowForgedMidTransactionIsNotSigned() async throws {
        let rig = try await RelayRig(.mariadb)
        try await plantedRequestIsNotSigned(rig, try await rig.request())
    }

    /// A script that does not write its own row must not sign a row of another writer in its place.
    @Test func unwrittenRowIsNotSigned() async throws {
        let rig = try await RelayRig(.mariadb)
        let request = try await rig.request()
        try rig.execute("UPDATE website SET state = 'disabled'")
        try await plantedRequestIsNotSigned(rig, request)
    }

    private func plantedRequestIsNotSigned(_ rig: RelayRig, _ request: IdempotentRequest) async throws {
        let store = try store(of: rig) { try rig.forge(rig.row(of: request)) }
        defer { store.close() }
        await #expect(throws: StoreFailure.forged("idempotency \(request.keyText)")) {
            try await rig.begin(request, in: store)
        }
        #expect(try await !isSigned("idempotency", rig))
    }

    /// Another relay may write the same row in that time. That row is genuine.
    @Test func rowWrittenByAnotherRelayMidTransactionIsAccepted() async throws {
        let rig = try await RelayRig(.mariadb)
        let request = try await rig.request()
        let store = try store(of: rig) { try rig.execute(rig.row(of: request)) }
        defer { store.close() }
        let row = try await rig.begin(request, in: store)
        #expect(row?.operation.text == zeros)
        #expect(try await isSigned("idempotency", rig))
    }

    /// The attacker plants a recovery code that they know.
    @Test func recoveryCodeForgedMidTransactionUnlocksNobody() async throws {
        let rig = try await RelayRig(.mariadb)
        let ada = try await Person.registered("ada", at: try await rig.shop(), rig)
        _ = try await ada.addRecoveryCodes()
        try rig.execute("UPDATE user SET state = 'frozen', stopped_by = 'phone'")
        let digest = SHA256.hash(Array("stranger".utf8))
        let user = try #require(UserID(try rig.text("SELECT lower(hex(id)) FROM user")))
        let factor = try #require(FactorID(try rig.text("SELECT lower(hex(id)) FROM factor")))
        let store = try store(of: rig) {
            try rig.forge(
                """
                INSERT INTO recovery_code (user_id, digest, factor_id, position)
                VALUES (x'\(user)', x'\(Hex.encode(digest))', x'\(factor)', 11)
                """)
        }
        defer { store.close() }
        await #expect(throws: StoreFailure.forged("recovery_code \(user):\(Hex.encode(digest))")) {
            try await rig.on { relay in
                try await store.unlock(
                    user, recovery: digest, of: factor, failures: 0, at: rig.time.now(), as: relay.operations.new())
            }
        }
        #expect(try rig.count("SELECT count(*) FROM user WHERE state = 'active'") == 0)
    }

    /// The attacker knows the codes of a list that waits to be typed back, and makes it count. The
    /// script does not check that list, because it relies on the active one.
    @Test func listActivatedMidTransactionUnlocksNobody() async throws {
        let rig = try await RelayRig(.mariadb)
        let ada = try await Person.registered("ada", at: try await rig.shop("shop", ["recovery-check": "on"]), rig)
        let user = try #require(UserID(try rig.text("SELECT lower(hex(id)) FROM user")))
        let first = try await ada.addRecoveryCodes()
        let position = Int(try rig.count("SELECT counter FROM factor"))
        let isConfirmed = try await rig.on { relay in
            try await relay.confirmRecoveryCodes(
                username: "ada", code: first[position - 1], by: ada.website, as: relay.operations.new())
        }
        #expect(isConfirmed)
        let known = try await ada.addRecoveryCodes()
        let digest = try #require(RecoveryCode.digest(known[0], user: user))
        let factor = try #require(
            FactorID(try rig.text("SELECT lower(hex(id)) FROM factor WHERE state = 'active'")))
        try rig.execute("UPDATE user SET state = 'frozen', stopped_by = 'phone'")
        // A row can lose the right to count without a key, and a user has one active list.
        try rig.forge("UPDATE factor SET state = 'former' WHERE state = 'active'")
        let store = try store(of: rig) { try rig.forge("UPDATE factor SET state = 'active' WHERE state = 'waiting'") }
        defer { store.close() }
        let unlocked = try await rig.on { relay in
            try await store.unlock(
                user, recovery: digest, of: factor, failures: 0, at: rig.time.now(), as: relay.operations.new())
        }
        #expect(!unlocked)
        #expect(try rig.count("SELECT count(*) FROM user WHERE state = 'active'") == 0)
    }

    /// The code confirms an address, and the script changes nothing in its row.
    @Test func sentCodeForgedMidTransactionConfirmsNothing() async throws {
        let rig = try await RelayRig(.mariadb)
        let shop = try await rig.shop()
        let ada = try await rig.enrolled("ada", at: shop)
        try rig.addFactor(.mail, of: ada.credential.user, at: shop, address: "ada@example.com")
        try rig.execute("UPDATE factor SET state = 'waiting', confirmed_at = NULL")
        let (user, now) = (ada.credential.user, rig.time.now())
        let factor = try await rig.on { _ in try await rig.store.factors(of: user, at: now) }.first
        let waiting = try #require(factor)
        let store = try store(of: rig) {
            try rig.forge(
                """
                INSERT INTO sent_code (factor_id, counter, sent_at, expires_at)
                VALUES (x'\(waiting.id)', 7, '\(now.sql)', '\((now + .seconds(60)).sql)')
                """)
        }
        defer { store.close() }
        await #expect(throws: StoreFailure.forged("sent_code \(waiting.id):7")) {
            try await rig.on { relay in
                try await store.confirm(
                    address: waiting, of: user, failures: 0, code: 7, isVouchedFor: true, at: now,
                    as: relay.operations.new())
            }
        }
        #expect(try rig.count("SELECT count(*) FROM factor WHERE state = 'active'") == 0)
    }
}

extension IdempotentRequest {
    fileprivate var keyText: String { "\(website):\(Hex.encode(digest))" }
}

extension RelayRig {
    fileprivate func request() async throws -> IdempotentRequest {
        IdempotentRequest(website: try await shop().id, route: "r", key: "k", content: [])
    }

    @discardableResult
    fileprivate func begin(_ request: IdempotentRequest, in store: Store) async throws -> IdempotencyRow? {
        let operation = relay.operations.new().id
        return try await on { [time] relay in
            try await store.begin(request, as: operation, relay: relay.operations.draw(), at: time.now())
        }
    }

    /// Returns SQL that writes a row of the request under an operation that no relay has started.
    fileprivate func row(of request: IdempotentRequest) -> String {
        """
        INSERT INTO idempotency (website_id, digest, fingerprint, state, operation, created_at)
        VALUES (x'\(request.website)', x'\(Hex.encode(request.digest))', x'\(Hex.encode(request.fingerprint))',
        'running', x'\(zeros)', '\(time.now().sql)')
        """
    }
}
