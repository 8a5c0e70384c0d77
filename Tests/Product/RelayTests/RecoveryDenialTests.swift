import Bytes
import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// Denials of requests about recoveries.
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
}
