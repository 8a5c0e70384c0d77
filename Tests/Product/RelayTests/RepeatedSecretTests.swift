import Bytes
import Crypto
import Domain
import Log
import Storage
import Synchronization
import TestSupport
import Testing
import World

@testable import Relay

/// A secret that is shown once is the same for every run of its operation: at this relay, at
/// another relay, and after a crash.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RepeatedSecretTests {
    // MARK: Two relays

    /// The first relay stood still between the start of the request and its change. It was declared
    /// dead, and another relay has run the request meanwhile.
    @Test(arguments: StoreKind.all, SecretVerb.allCases)
    func lateRunReturnsTheStoredSecret(kind: StoreKind, verb: SecretVerb) async throws {
        let fixture = try await StoredSecretFixture(try await RelayRig(kind))
        let other = try fixture.rig.another()
        let fresh = fixture.rig.relay.operations.new(isRepeatable: true)
        let second = try await fixture.run(verb, as: other.operations.again(fresh.id), at: other)
        #expect(try await fixture.run(verb, as: fresh) == second)
        #expect(try await fixture.run(verb, as: other.operations.again(fresh.id)) == second)
        #expect(try fixture.kept == 1)
        try await fixture.check(second, of: verb)
    }

    @Test(arguments: [StoreKind.file, .mariadb], SecretVerb.allCases)
    func twoRelaysReturnTheSameSecret(kind: StoreKind, verb: SecretVerb) async throws {
        let fixture = try await StoredSecretFixture(try await RelayRig(kind))
        let beside = try await RelayRig(beside: fixture.rig)
        let shop = fixture.shop
        // A user registers once, and an active app is replaced only with its code.
        for round in 0..<3 where round == 0 || ![.register, .totp].contains(verb) {
            let operation = fixture.rig.relay.operations.new(isRepeatable: true).id
            async let first = fixture.rig.on { try await verb.run(at: $0, shop, as: $0.operations.again(operation)) }
            async let second = beside.on { try await verb.run(at: $0, shop, as: $0.operations.again(operation)) }
            let (one, other) = (try await first, try await second)
            #expect(one == other)
            #expect(try fixture.kept == Int64(round + 1))
            if verb == .totp || verb == .recovery { try await fixture.check(one, of: verb) }
        }
    }

    /// Number and nonce are random too, and are stored in the challenge.
    @Test(arguments: [StoreKind.file, .mariadb]) func twoRelaysOpenTheSameChallenge(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop("shop", ["number": "6"])
        let (user, _, _) = try await rig.enrolled("ada", at: shop)
        let beside = try await RelayRig(beside: rig)
        for _ in 0..<3 {
            let operation = rig.relay.operations.new().id
            let login: @Sendable (Relay) async throws -> OpenedChallenge = { relay in
                try await relay.login(
                    LoginRequest(subject: .token(user)), by: shop, as: relay.operations.again(operation))
            }
            async let first = rig.on(login)
            async let second = beside.on(login)
            let (one, other) = (try await first, try await second)
            #expect(one == other && one.number?.utf8.count == 6)
        }
        // The same operation at another installation with the same key has other random values.
        #expect(try rig.count("SELECT count(DISTINCT nonce) FROM challenge") == 3)
    }

    // MARK: A crash

    @Test(arguments: StoreKind.all, SecretVerb.allCases)
    func repeatedRequestAfterACrashReturnsTheSameSecret(kind: StoreKind, verb: SecretVerb) async throws {
        let fixture = try await StoredSecretFixture(try await RelayRig(kind))
        let request = IdempotentRequest(website: fixture.shop.id, route: "r", key: "k", content: [])
        guard case .run(let fresh) = try await fixture.rig.on({ try await $0.begin(request) }) else {
            throw RigFailure("the first time is no first time")
        }
        // The change is committed, and the relay dies with the answer.
        let first = try await fixture.run(verb, as: fresh)
        #expect(try fixture.kept == 1)
        fixture.rig.time.advance(by: Relay.keptFor - .seconds(1))
        try await fixture.rig.on { await $0.deleteExpiredRows() }
        let other = try fixture.rig.another()
        guard case .run(let again) = try await fixture.rig.on({ _ in try await other.begin(request) }) else {
            throw RigFailure("it is not taken up")
        }
        #expect(try await fixture.run(verb, as: again, at: other) == first)
        // The secret was shown, and nothing is left from which it could be shown again.
        try await fixture.rig.on { _ in
            try await other.finish(request, again, status: 201, body: [], holdsSecret: true)
        }
        #expect(try fixture.kept == 0)
        guard case .shownOnce = try await fixture.rig.on({ try await $0.begin(request) }) else {
            throw RigFailure("it is shown twice")
        }
        #expect(await refusal { try await fixture.run(verb, as: again, at: other) } == .shownOnce)
    }

    @Test(arguments: StoreKind.all) func operationSecretExpires(kind: StoreKind) async throws {
        let fixture = try await StoredSecretFixture(try await RelayRig(kind))
        let operation = fixture.rig.relay.operations.new(isRepeatable: true)
        _ = try await fixture.run(.totp, as: operation)
        fixture.rig.time.advance(by: Relay.keptFor)
        try await fixture.rig.on { await $0.deleteExpiredRows() }
        #expect(try fixture.kept == 1)
        fixture.rig.time.advance(by: .milliseconds(1))
        try await fixture.rig.on { await $0.deleteExpiredRows() }
        #expect(try fixture.kept == 0)
        let again = fixture.rig.relay.operations.again(operation.id)
        #expect(await refusal { try await fixture.run(.totp, as: again) } == .shownOnce)
    }

    /// A request without an Idempotency-Key cannot be repeated, so no secret is stored for it.
    @Test(arguments: SecretVerb.allCases) func secretOfAnUnrepeatableOperationIsNotStored(verb: SecretVerb) async throws
    {
        let fixture = try await StoredSecretFixture(try await RelayRig(.memory))
        let given = try await fixture.run(verb, as: fixture.rig.relay.operations.new())
        #expect(try fixture.kept == 0)
        try await fixture.check(given, of: verb)
    }

    /// A refused run stores nothing and blocks nothing.
    @Test(arguments: StoreKind.all) func refusedOperationStoresNoSecret(kind: StoreKind) async throws {
        let fixture = try await StoredSecretFixture(try await RelayRig(kind))
        let fresh = fixture.rig.relay.operations.new(isRepeatable: true)
        try fixture.rig.execute("UPDATE user SET state = 'frozen'")
        #expect(await refusal { try await fixture.run(.totp, as: fresh) } != nil)
        #expect(try fixture.kept == 0)
        try fixture.rig.execute("UPDATE user SET state = 'active'")
        let given = try await fixture.run(.totp, as: fixture.rig.relay.operations.again(fresh.id))
        try await fixture.check(given, of: .totp)
    }

    // MARK: A lost COMMIT

    /// A connection that is lost once, at the COMMIT of a change: before or after the COMMIT is
    /// done.
    private final class LostCommit: Sendable {
        private let isAfter: Bool
        private let state = Mutex<(isDue: Bool, count: Int)>((false, 0))

        init(isAfter: Bool) { self.isAfter = isAfter }

        var count: Int { state.withLock { $0.count } }

        func see(_ steps: [BoundStatement]) {
            guard steps.contains(where: { $0.statement.sql.contains("INTO audit") }) else { return }
            state.withLock { if $0.count == 0 { $0.isDue = true } }
        }

        func commit(_ session: any Session) throws(SessionFailure) {
            let isLost = state.withLock { state in
                defer { state.isDue = false }
                if state.isDue { state.count += 1 }
                return state.isDue
            }
            guard isLost else { return try session.commit() }
            if isAfter { try session.commit() } else { session.rollBack() }
            throw .lost("the connection ended at the COMMIT")
        }
    }

    @Test(arguments: [StoreKind.file, .mariadb], SecretVerb.allCases)
    func rerunAfterALostCommitReturnsTheSameSecret(kind: StoreKind, verb: SecretVerb) async throws {
        for (isAfter, isRepeatable) in [(false, false), (false, true), (true, false), (true, true)] {
            let fixture = try await StoredSecretFixture(try await RelayRig(kind))
            let lost = LostCommit(isAfter: isAfter)
            let lossy = try Store.watched(
                at: fixture.rig.url, rows: RelayRig.rowAuthenticator(),
                commit: { (session) throws(SessionFailure) in try lost.commit(session) },
                run: { (steps, session) throws(SessionFailure) in
                    lost.see(steps)
                    return try session.run(steps)
                })
            defer { lossy.close() }
            let relay = try fixture.rig.relay(over: lossy)
            let operation = relay.operations.new(isRepeatable: isRepeatable)
            let given = try await fixture.run(verb, as: operation, at: relay)
            #expect(lost.count == 1)
            if isRepeatable {
                #expect(try await fixture.run(verb, as: relay.operations.again(operation.id), at: relay) == given)
            }
            try await fixture.check(given, of: verb)
        }
    }

    // MARK: Revocation codes

    @Test(arguments: StoreKind.all) func revocationCodeIsStoredForTenMinutes(kind: StoreKind) async throws {
        let fixture = try await StoredSecretFixture(try await RelayRig(kind))
        let (rig, ada) = (fixture.rig, fixture.ada)
        let phone = try TestPhone(pushToken: "one")
        let first = try #require(await ada.bind(phone, ada.code).bound)
        #expect(try fixture.kept == 1)
        rig.time.advance(by: NewActivation.lifetime - .milliseconds(1))
        try await rig.on { await $0.deleteExpiredRows() }
        #expect(await ada.bind(phone, ada.code).bound?.revocationCode == first.revocationCode)
        rig.time.advance(by: .milliseconds(2))
        try await rig.on { await $0.deleteExpiredRows() }
        #expect(try fixture.kept == 0)
        #expect(await ada.bind(phone, ada.code).refusal == .unauthenticated)
    }

    /// The same key with another activation code is the same phone, with a new revocation code.
    @Test(arguments: StoreKind.all) func reboundPhoneGetsANewRevocationCode(kind: StoreKind) async throws {
        let fixture = try await StoredSecretFixture(try await RelayRig(kind))
        let (rig, ada) = (fixture.rig, fixture.ada)
        let phone = try TestPhone(pushToken: "one")
        let first = try #require(await ada.bind(phone, ada.code).bound)
        let code = try await ada.furtherCode()
        let second = try #require(await ada.bind(phone, code).bound)
        #expect(second.device == first.device && second.revocationCode != first.revocationCode)
        // The old code is void, and is not shown again.
        #expect(await ada.bind(phone, ada.code).refusal == .unauthenticated)
        for (revocation, active) in [(first.revocationCode, Int64(1)), (second.revocationCode, 0)] {
            try await rig.on { try await $0.revoke(code: revocation, from: "203.0.113.9") }
            #expect(try rig.devices(.active) == active)
        }
    }
}
