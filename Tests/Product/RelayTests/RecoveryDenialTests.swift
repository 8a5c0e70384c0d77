import Bytes
import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// Requests to the phones about recoveries, and their denials.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RecoveryDenialTests {
    /// A report of fraud about one recovery ends all. The audit has the end of each once.
    @Test(arguments: StoreKind.all, [true, false])
    func fraudAuditsEachRecoveryOnce(kind: StoreKind, isLast: Bool) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false, ["answers": "signed"])
        let phone = try TestPhone(pushToken: "ada")
        let bound = (phone, try await fixture.ada.bound(phone, fixture.ada.code))
        _ = try await fixture.ada.addHOTP(Secret(RelayRig.secret))
        var recoveries: [(handle: String, seen: SeenRecovery)] = []
        for factor in [Factor.totp, .hotp] {
            _ = try await fixture.start(factor)
            let opened = try await fixture.open(try fixture.token())
            recoveries.append((opened.handle, opened.state))
        }
        recoveries.sort { $0.seen.recovery.id.bytes.lexicographicallyPrecedes($1.seen.recovery.id.bytes) }
        let denied = recoveries[isLast ? 1 : 0]
        let asked = try await fixture.asked(denied.handle)
        #expect(try await fixture.rig.decide(.fraud, asked, by: bound) == .failure)
        for (_, seen) in recoveries {
            let ends = "FROM audit WHERE event = 'recovery.cancelled' AND outcome = '\(seen.recovery.factor.rawValue)'"
            #expect(try fixture.rig.count("SELECT count(*) \(ends)") == 1)
            let isDenied = seen.recovery.id == denied.seen.recovery.id
            #expect(try fixture.rig.count("SELECT count(*) \(ends) AND device_id IS NOT NULL") == (isDenied ? 1 : 0))
        }
        #expect(try fixture.rig.count("SELECT count(*) FROM recovery WHERE state <> 'cancelled'") == 0)
        #expect(try fixture.events("recovery.cancelled")[0] == 1)
    }

    /// The row of the recovery names only the newest request, and that of a request after it was made.
    @Test(arguments: StoreKind.all, [true, false])
    func denialOfAnUnnamedRequestCancels(kind: StoreKind, isProved: Bool) async throws {
        let fixture = try await RecoveryFixture(kind)
        let handle = try await fixture.opened()
        let asked =
            if isProved { try #require(try await fixture.proved(handle).challenge) } else {
                try await fixture.asked(handle)
            }
        try fixture.rig.execute("UPDATE recovery SET challenge_id = NULL")
        try await fixture.ada.decide(asked, .deny, by: try #require(fixture.phone))
        #expect(try fixture.phase() == "cancelled")
        #expect(try fixture.events("recovery.cancelled") == [1, 1])
        let audited = "SELECT count(*) FROM audit WHERE event = 'recovery.cancelled' AND device_id IS NOT NULL"
        #expect(try fixture.rig.count(audited) == 1)
    }

    /// A denial of something else ends no recovery.
    @Test(arguments: StoreKind.all) func denialOfALoginCancelsNothing(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind)
        _ = try await fixture.proved(try await fixture.opened())
        let login = try await fixture.ada.login()
        try await fixture.ada.decide(login.challenge, .deny, by: try #require(fixture.phone))
        #expect(try fixture.phase() == "proved")
    }

    /// An operator sees the login of the owner, and not a request that no phone shows.
    @Test(arguments: StoreKind.all) func reminderIsNotTheChallengeOfTheUser(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind)
        let (rig, shop, handle) = (fixture.rig, fixture.shop, try await fixture.opened())
        _ = try await fixture.proved(handle)
        rig.time.advance(by: .seconds(3600))
        let login = try await fixture.ada.login().challenge
        let remind = {
            _ = try await rig.on { relay in
                try await relay.askPhones(handle: handle, by: shop, as: relay.operations.new())
            }
            await rig.settled()
        }
        let named = "SELECT lower(hex(challenge_id)) AS value FROM user WHERE username = 'ada'"
        try await remind()
        #expect(try rig.count("SELECT count(*) FROM challenge WHERE known = -1 AND decided_at IS NULL") == 1)
        #expect(ChallengeID(try rig.text(named)) == login)
        // Without an open login it is the newest one.
        rig.time.advance(by: .seconds(3600))
        try await remind()
        #expect(ChallengeID(try rig.text(named)) != login)
    }
}
