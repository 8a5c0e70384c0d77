import Crypto
import Domain
import TestSupport
import Testing
import World

@testable import Relay

/// Phones of a relay whose authority is outside of the installation.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct OutsideEnrolmentTests {
    /// The phone is bound while the authority is away or lies, and gets its certificate later.
    @Test(arguments: StoreKind.all) func enrolmentIsNotLost(kind: StoreKind) async throws {
        let outside = try await OutsideEnrolment(kind)
        let (rig, issuer, phone) = (outside.rig, outside.issuer, outside.phone)
        // The phone does not know its id yet, so the authority is not asked.
        let first = try await outside.bind(try SigningRequest(commonName: "phone", key: phone.key))
        #expect(first.certificate == nil && issuer.orders.isEmpty)
        let named = try outside.named(first.device)
        let again = try await outside.bind(named)
        #expect(again.certificate == nil && again.revocationCode == first.revocationCode && issuer.orders.count == 1)
        // The phone is bound, and asks by itself.
        let credential = try await outside.credential(first.device)
        rig.time.advance(by: OutsidePauses.unavailable)
        await #expect(throws: Refusal.unavailable) { try await outside.change(named, by: credential) }
        rig.time.advance(by: OutsidePauses.unavailable)
        issuer.answer { _ in throw CertificateFailure.later("not yet", .seconds(120)) }
        await #expect(throws: Refusal.pending(retryAfter: .seconds(120))) {
            try await outside.change(named, by: credential)
        }
        rig.time.advance(by: .seconds(120))
        let lie = try outside.authority.issueClient(
            uri: "twoefay:device:ff", key: phone.key.publicKey, days: 5, at: rig.time.now())
        issuer.answer { _ in lie }
        await #expect(throws: Refusal.broken) { try await outside.change(named, by: credential) }
        #expect(try await outside.change(nil, by: credential) == nil)
        #expect(try rig.count("SELECT count(*) FROM certificate") == 0)
        outside.issueAll()
        rig.time.advance(by: OutsidePauses.failed)
        let pem = try #require(try await outside.change(named, by: credential))
        #expect(try Certificate(pem: Array(pem.utf8)).uris == ["twoefay:device:\(first.device.text)"])
        #expect(try rig.count("SELECT count(*) FROM certificate") == 1)
        #expect(issuer.orders.map(\.isRenewal).allSatisfy { !$0 })
        _ = try await outside.change(named, by: credential)
        #expect(issuer.orders.last?.isRenewal == true)
        await #expect(throws: Refusal.notFound) {
            try await rig.on { [relay = outside.relay] _ in try await relay.revocationList() }
        }
    }

    /// The certificates of a stolen phone do not keep the user from binding another one.
    @Test func bindingNeedsNoRoomForACertificate() async throws {
        let outside = try await OutsideEnrolment()
        outside.issueAll()
        let (rig, now) = (outside.rig, outside.rig.time.now())
        let code = try await outside.person.furtherCode()
        try rig.execute("UPDATE activation SET approval = 'website'")
        let stolen = try await outside.bind(nil).device
        for number in 0..<NewCertificate.mostOfUser {
            try rig.execute(
                """
                INSERT INTO certificate (serial, device_id, created_at, expires_at, is_on_hold)
                VALUES ('\(number)', x'\(stolen.text)', '\(now.sql)', '\((now + .seconds(86_400)).sql)', 0)
                """)
        }
        let former = try await outside.credential(stolen)
        try await rig.on { [relay = outside.relay] _ in try await relay.unbind(by: former) }
        let phone = try TestPhone(pushToken: "push")
        let bound = try await outside.bind(nil, with: phone, code: code)
        let credential = try await outside.credential(bound.device, of: phone)
        let named = try outside.named(bound.device, of: phone)
        await #expect(throws: Refusal.limited(retryAfter: .seconds(86_400))) {
            try await outside.change(named, by: credential)
        }
        #expect(outside.issuer.orders.isEmpty)
    }

    /// Otherwise a phone could get certificates without end from an authority that the relay
    /// refuses, and use up the server's places for all phones.
    @Test(arguments: [
        (CertificateFailure.unavailable("away"), Refusal.unavailable, OutsidePauses.unavailable),
        (.later("not yet", .seconds(120)), .pending(retryAfter: .seconds(120)), .seconds(120)),
        (.failed("refused"), .broken, OutsidePauses.failed),
    ])
    func authorityIsNotAskedAgainBeforeAPause(
        failure: CertificateFailure, refusal: Refusal, pause: Duration
    ) async throws {
        let outside = try await OutsideEnrolment()
        let device = try await outside.bind(nil).device
        let (named, credential) = (try outside.named(device), try await outside.credential(device))
        outside.issuer.answer { _ in throw failure }
        await #expect(throws: refusal) { try await outside.change(named, by: credential) }
        // A repetition of the binding asks no more often.
        #expect(try await outside.bind(named).certificate == nil)
        outside.rig.time.advance(by: pause - .seconds(1))
        for _ in 0..<3 {
            await #expect(throws: Refusal.pending(retryAfter: .seconds(1))) {
                try await outside.change(named, by: credential)
            }
        }
        #expect(outside.issuer.orders.count == 1)
        outside.rig.time.advance(by: .seconds(1))
        outside.issueAll()
        #expect(try await outside.change(named, by: credential) != nil)
        #expect(outside.issuer.orders.count == 2)
    }

    @Test func phoneHasOneRequestUnderWay() throws {
        let (pauses, time, key) = (OutsidePauses(), TestTime(), try P256PrivateKey.generate().publicKey)
        func order() throws -> CertificateOrder {
            CertificateOrder(of: try #require(DeviceID(SystemRandomness().bytes(16))), key: key)
        }
        let (first, other) = (try order(), try order())
        #expect(pauses.begin(first, at: time.instant()) == nil)
        #expect(pauses.begin(first, at: time.instant()) == OutsidePauses.underWay)
        #expect(pauses.begin(other, at: time.instant()) == nil)
        pauses.end(first, nil, at: time.instant())
        #expect(pauses.begin(first, at: time.instant()) == nil)
    }

    /// A push token or a name that comes with the request for a certificate takes effect at once.
    @Test(arguments: [CertificateFailure.unavailable("away"), .later("not yet", .seconds(120)), .failed("refused")])
    func changeIsKeptWhileTheAuthorityIsAway(failure: CertificateFailure) async throws {
        let outside = try await OutsideEnrolment()
        let device = try await outside.bind(nil).device
        let (named, credential) = (try outside.named(device), try await outside.credential(device))
        outside.issuer.answer { _ in throw failure }
        #expect(try await outside.change(name: "Blue", named, by: credential) == nil)
        #expect(try outside.rig.count("SELECT count(*) FROM device WHERE name = 'Blue'") == 1)
        #expect(outside.issuer.orders.count == 1)
        outside.issueAll()
        outside.rig.time.advance(by: OutsidePauses.failed)
        #expect(try await outside.change(name: "Green", named, by: credential) != nil)
        #expect(try outside.rig.count("SELECT count(*) FROM device WHERE name = 'Green'") == 1)
    }

    /// A certificate that an outside authority has issued is valid, also if the relay discards it.
    @Test(arguments: StoreKind.all) func authorityIsNotAskedForWhatIsDiscarded(kind: StoreKind) async throws {
        let outside = try await OutsideEnrolment(kind)
        let (rig, issuer) = (outside.rig, outside.issuer)
        outside.issueAll()
        let device = try await outside.bind(nil).device
        let (credential, key) = (try await outside.credential(device), try P256PrivateKey.generate())
        let first = rig.time.now()
        #expect(try await outside.refusal("sign", key: key, at: first, by: credential) == nil)
        rig.time.advance(by: .seconds(7))
        let used = try await outside.refusal("seal", key: key, at: rig.time.now(), by: credential)
        let replayed = try await outside.refusal("sign", key: try .generate(), at: first, by: credential)
        for (refusal, code) in [(used, FieldFault.Code.taken), (replayed, .mismatch)] {
            guard case .conflict(let faults) = refusal else {
                Issue.record("\(code): \(String(describing: refusal))")
                continue
            }
            #expect(faults.map(\.code) == [code])
        }
        let now = rig.time.now()
        for number in 1..<NewTaggedCertificate.most {
            try rig.execute(
                """
                INSERT INTO certificate (serial, device_id, tag, created_at, expires_at, is_on_hold)
                VALUES ('0\(number)', x'\(device.text)', 'sign', '\(now.sql)', '\((now + .seconds(86_400)).sql)', 0)
                """)
        }
        #expect(
            try await outside.refusal("sign", key: key, at: now, by: credential)
                == .limited(retryAfter: NewCertificate.pause))
        #expect(issuer.orders.count == 1)
        #expect(try await outside.refusal("seal", key: try .generate(), at: now, by: credential) == nil)
        #expect(issuer.orders.count == 2)
    }
}
