import Bytes
import Domain
import TestSupport
import Testing
import World

@testable import Relay
@testable import Storage

/// Addresses that wait for their confirmation code.
@Suite(.mayBlock) struct AddressTests {
    private static let add = Statement(
        """
        INSERT INTO factor (id, user_id, kind, state, secret, sealed_by, algorithm, digits, counter, address, failures,
        created_at, operation)
        VALUES (:factor, :user, :kind, 'waiting', x'00', '1', 'sha1', 6, 1, :address, 0, :now, :operation)
        """)
    private static let send = Statement("INSERT INTO sent_code VALUES (:factor, 0, NULL, :now, :expiresAt, NULL)")
    private static let take = [
        Factor.mail: Statement("UPDATE user SET email = :address WHERE id = :user"),
        .sms: Statement("UPDATE user SET phone = :address WHERE id = :user"),
    ]

    /// Adds a waiting address with a sent code to the user with this number.
    private func addWaiting(
        _ kind: Factor, _ address: String?, to number: Int, on store: Store
    ) async throws -> FactorID {
        let (id, user) = (Sample.id(number + 40_000) as FactorID, Sample.id(number) as UserID)
        _ = try await store.run(
            Script(
                "test",
                writes: [
                    Self.add(
                        factor: .id(id), user: .id(user), kind: .word(kind), address: .text(address),
                        now: .timestamp(Sample.now), operation: .id(user)),
                    Self.send(factor: .id(id), now: .timestamp(Sample.now), expiresAt: .timestamp(Sample.later)),
                ]))
        return id
    }

    /// Two users of one website confirm the same address at two relays at the same time. The first user gets the
    /// address. The second gets the same answer as for a later attempt.
    @Test(.timeLimit(.minutes(15)), arguments: [Factor.mail, .sms])
    func addressBelongsToItsFirstUser(_ kind: Factor) async throws {
        let relays = try await TwoRelays()
        let (first, operations) = (relays.first, relays.operations)
        let address = kind == .mail ? "new@example.com" : "+4366012345678"
        let id = try await addWaiting(kind, address, to: 2, on: first)
        let waiting = try #require(try await first.factors(of: Sample.id(2), at: Sample.now).first { $0.id == id })
        let take = try #require(Self.take[kind])
        // The other relay has not committed yet.
        try relays.holder.begin(.writing)
        _ = try relays.holder.run([take(address: .text(address), user: .id(Sample.id(1) as UserID))])

        async let confirmed = first.confirm(
            address: waiting, of: Sample.id(2), failures: 0, code: 0, isVouchedFor: true, at: Sample.now,
            as: operations.new())
        // The check for another user of the address waits for the transaction that is about to take the address.
        try await relays.second.untilRunning("UPDATE user SET operation = id %")
        try relays.holder.commit()
        #expect(try await confirmed == .taken)
        #expect(
            try await first.factors(of: Sample.id(2), at: Sample.now).contains { $0.id == id && $0.state == .waiting })
    }

    /// A user may confirm an address that already belongs to that user.
    @Test(arguments: Engine.allCases) func ownAddressIsConfirmed(_ engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        let store = try database.open()
        defer { store.close() }
        try await Sample.fill(store, at: database.url)
        let operations = Operations(
            masterKey: Secret([UInt8](repeating: 1, count: 32)), randomness: SystemRandomness())
        for (kind, address) in [(Factor.mail, "2@example.com"), (.sms, "+4366012345678")] {
            let number = kind == .mail ? 2 : 3
            let id = try await addWaiting(kind, address, to: number, on: store)
            let waiting = try #require(
                try await store.factors(of: Sample.id(number), at: Sample.now).first { $0.id == id })
            let written = try await store.confirm(
                address: waiting, of: Sample.id(number), failures: 0, code: 0, isVouchedFor: true, at: Sample.now,
                as: operations.new())
            #expect(written == .done)
        }
    }

    /// An address that was removed before it was confirmed. Its row stays because of its counts, but is not shown.
    @Test(arguments: Engine.allCases) func removedAddressIsNotShown(_ engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        let store = try database.open()
        defer { store.close() }
        try await Sample.fill(store, at: database.url)
        for (kind, address) in [(Factor.mail, "new@example.com"), (.sms, nil)] as [(Factor, String?)] {
            let number = kind == .mail ? 2 : 3
            _ = try await addWaiting(kind, address, to: number, on: store)
            let user = try #require(try await store.run(Accounts.user("user-\(number)", of: "shop")))
            let shown = user.factors.map { "\($0.state) \($0.kind)" }.sorted()
            #expect(
                shown
                    == (address == nil
                        ? ["active mail", "waiting totp"] : ["active mail", "waiting mail", "waiting totp"]))
        }
    }
}
