import Crypto
import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// The certificates of users and websites that are stopped for some time: they are on hold.
@Suite(.mayBlock) struct RevocationHoldTests {
    private typealias Fixture = RevocationListTests.Fixture

    private func change(
        _ fixture: Fixture, _ query: @escaping @Sendable (Operation) -> Query<Bool>
    ) async throws {
        let (store, operation) = (fixture.rig.store, fixture.rig.relay.operations.new())
        let isDone = try await blocking { try store.runBlocking(query(operation)) }
        #expect(isDone)
    }

    /// All three certificates of the user are on hold, those of both phones, or none is.
    private func expect(_ fixture: Fixture, isOnHold: Bool, at place: SourceLocation = #_sourceLocation) async throws {
        let entries = try await fixture.entries()
        #expect(entries.count == (isOnHold ? 3 : 0), sourceLocation: place)
        #expect(entries.values.allSatisfy { $0 }, sourceLocation: place)
        for certificate in fixture.lost.certificates where isOnHold {
            #expect(entries[certificate.serial] == true, sourceLocation: place)
        }
    }

    @Test(arguments: StoreKind.all) func lockedUserIsOnHold(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind)
        let (user, now) = (fixture.kept.user, fixture.rig.time.now())
        try await change(fixture) { Locks.lock(user, at: now, as: $0) }
        try await expect(fixture, isOnHold: true)
        try await change(fixture) { Locks.unlock(user, from: [.locked, .frozen], by: .operator, at: now, as: $0) }
        try await expect(fixture, isOnHold: false)
    }

    /// The directory sync disables who left; the state is also what an operator changes by SQL.
    @Test(arguments: StoreKind.all, ["locked", "frozen", "disabled"])
    func stoppedUserIsOnHold(kind: StoreKind, state: String) async throws {
        let fixture = try await Fixture.set(kind)
        try fixture.rig.execute("UPDATE user SET state = '\(state)'")
        try await expect(fixture, isOnHold: true)
        try fixture.rig.execute("UPDATE user SET state = 'active'")
        try await expect(fixture, isOnHold: false)
    }

    @Test(arguments: StoreKind.all) func expiredUserIsOnHold(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind)
        let end = fixture.rig.time.now() + .seconds(60)
        try fixture.rig.execute("UPDATE user SET expires_at = '\(end.sql)'")
        try await expect(fixture, isOnHold: false)
        fixture.rig.time.advance(by: .seconds(60))
        try await expect(fixture, isOnHold: true)
        try fixture.rig.execute("UPDATE user SET expires_at = NULL")
        try await expect(fixture, isOnHold: false)
    }

    @Test(arguments: StoreKind.all) func usersOfADisabledWebsiteAreOnHold(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind)
        let other = try await Person.registered(
            "bob", at: try await fixture.rig.shop("bank", ["number": "0"]), fixture.rig)
        _ = try await other.bound(try TestPhone(pushToken: "other"), other.code)
        let (shop, now) = (fixture.person.website.id, fixture.rig.time.now())
        try await change(fixture) { Websites.set(shop, isDisabled: true, at: now, as: $0) }
        // The other website's user is not among them.
        try await expect(fixture, isOnHold: true)
        try await change(fixture) { Websites.set(shop, isDisabled: false, at: now, as: $0) }
        try await expect(fixture, isOnHold: false)
    }

    /// A certificate that is revoked for good stays so, whatever happens to its user.
    @Test(arguments: StoreKind.all) func revokedCertificateOfAStoppedUserIsNotOnHold(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind)
        let (lost, shop) = (fixture.lost, fixture.person.website)
        try await fixture.rig.on { relay in try await relay.unbind(lost.credential.id, ofUser: "ada", by: shop) }
        try fixture.rig.execute("UPDATE user SET state = 'locked', expires_at = '2020-01-01 00:00:00.000'")
        try fixture.rig.execute("UPDATE website SET state = 'disabled'")
        let entries = try await fixture.entries()
        #expect(entries.count == 3 && entries.values.count { $0 } == 1)
        for certificate in lost.certificates { #expect(entries[certificate.serial] == false) }
    }

    /// The list says since when, so that a document signed before is told from one signed after.
    @Test(arguments: StoreKind.all) func holdBeganWithTheStop(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind)
        fixture.rig.time.advance(by: .seconds(3600))
        let (user, now) = (fixture.kept.user, fixture.rig.time.now())
        try await change(fixture) { Locks.lock(user, at: now, as: $0) }
        fixture.rig.time.advance(by: .seconds(3600))
        let later = fixture.rig.time.now()
        let found = try await fixture.rig.on { [store = fixture.rig.store] _ in
            try await store.revokedCertificates(at: later, limit: 10)
        }
        #expect(found.certificates.map(\.at) == [now, now, now])
        // If the list is full, what is only on hold makes room.
        try fixture.rig.execute(
            """
            UPDATE certificate SET revoked_at = '\((now - .seconds(60)).sql)'
            WHERE serial = '\(fixture.lost.certificates[0].serial)'
            """)
        let first = try await fixture.rig.on { [store = fixture.rig.store] _ in
            try await store.revokedCertificates(at: later, limit: 1)
        }
        #expect(first.certificates.map(\.serial) == [fixture.lost.certificates[0].serial])
    }
}
