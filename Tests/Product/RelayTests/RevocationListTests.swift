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

/// The revocation list of the phones' authority, over a real store.
@Suite(.mayBlock) struct RevocationListTests {
    /// A user with two phones. The first one has two certificates.
    struct Fixture {
        let person: Person
        let lost: (credential: PhoneCredential, certificates: [Certificate], code: String)
        let kept: PhoneCredential
        var rig: RelayRig { person.rig }

        static func set(_ kind: StoreKind) async throws -> Fixture {
            let rig = try await RelayRig(kind)
            let person = try await Person.registered("ada", at: try await rig.shop("shop", ["number": "0"]), rig)
            let further = try await person.furtherCode()
            try rig.execute("UPDATE activation SET approval = 'website'")
            let phone = try TestPhone(pushToken: "lost")
            guard let bound = await person.bind(phone, person.code).bound else { throw RigFailure("not bound") }
            let credential = try await person.credential(phone, bound.device)
            let renewed = try await rig.on { relay in
                try await relay.change(pushToken: nil, name: nil, renews: true, by: credential)
            }
            let certificates = try [bound.certificate ?? "", renewed ?? ""].map { try Certificate(pem: Array($0.utf8)) }
            let kept = try await person.bound(try TestPhone(pushToken: "kept"), further)
            return Fixture(
                person: person, lost: (credential, certificates, bound.revocationCode), kept: kept)
        }

        /// Returns the list after the relay has looked into the store again.
        func list() async throws -> RevocationList {
            rig.time.advance(by: .seconds(10))
            return try await rig.on { relay in try await relay.revocationList() }
        }

        func entries() async throws -> [String: Bool] { try ReadRevocationList(try await list().der).entries }

        func set(_ state: DeviceSwitch) async throws {
            let (id, shop) = (lost.credential.id, person.website)
            _ = try await rig.on { relay in
                try await relay.change(id, ofUser: "ada", name: nil, state: state, by: shop)
            }
        }
    }

    private enum Loss: String, CaseIterable, Sendable {
        case suspended, suspendedAndUnbound, website, phone, code, `operator`, forgotten

        func happen(to fixture: Fixture) async throws {
            let (lost, shop, rig) = (fixture.lost, fixture.person.website, fixture.rig)
            let unbind = {
                try await rig.on { relay in
                    try await relay.unbind(lost.credential.id, ofUser: "ada", by: shop)
                }
            }
            switch self {
            case .suspended: try await fixture.set(.suspended)
            case .suspendedAndUnbound:
                try await fixture.set(.suspended)
                try await unbind()
            case .website: try await unbind()
            case .phone: try await rig.on { relay in try await relay.unbind(by: lost.credential) }
            case .code: try await rig.on { relay in try await relay.revoke(code: lost.code, from: "192.0.2.1") }
            case .operator: #expect(try await rig.byOperator(.revoked, lost.credential.id))
            case .forgotten: try await rig.on { relay in try await relay.forget(username: "ada", by: shop) }
            }
        }
    }

    /// Servers that read the list know the issuer of new certificates by it.
    @Test func listIsOfTheAuthorityThatSignsNow() async throws {
        let rig = try await RelayRig(.memory)
        func list() async throws -> CertificateRevocationList {
            rig.time.advance(by: .seconds(10))
            let der = try await rig.on { relay in try await relay.revocationList() }.der
            return try CertificateRevocationList(der: der)
        }
        _ = try await list()
        let next = try CertificateAuthority.create(commonName: "Next", days: 100, at: rig.time.now())
        rig.relay.replace(next)
        #expect(try await list().isSigned(by: next.certificate))
    }

    @Test(arguments: StoreKind.all, Loss.allCases)
    private func listNamesAllCertificatesOfAStoppedPhone(kind: StoreKind, loss: Loss) async throws {
        let fixture = try await Fixture.set(kind)
        #expect(try await fixture.entries() == [:])
        try await loss.happen(to: fixture)
        let entries = try await fixture.entries()
        let expected = ReadRevocationList.entries(fixture.lost.certificates, onHold: loss == .suspended)
        if loss == .forgotten {
            // All phones of the user are gone.
            #expect(entries.count == 3 && expected.allSatisfy { entries[$0.key] == $0.value })
        } else {
            #expect(entries == expected)
        }
    }

    @Test(arguments: StoreKind.all) func resumedPhoneLeavesTheList(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind)
        try await fixture.set(.suspended)
        #expect(try await fixture.entries().count == 2)
        try await fixture.set(.active)
        #expect(try await fixture.entries() == [:])
        try await fixture.set(.suspended)
        #expect(try await fixture.entries().count == 2)
    }

    @Test(arguments: StoreKind.all) func expiredCertificateLeavesTheList(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind)
        try await Loss.website.happen(to: fixture)
        fixture.rig.time.advance(by: .seconds(86_400 * Relay.certificateDays - 60))
        #expect(try await fixture.entries().count == 2)
        fixture.rig.time.advance(by: .seconds(120))
        #expect(try await fixture.entries() == [:])
        try await fixture.rig.on { relay in await relay.deleteExpiredRows() }
        #expect(try fixture.rig.count("SELECT count(*) FROM certificate") == 0)
    }

    /// The certificate of a phone that is stopped while it is issued would be missing in the list.
    @Test(arguments: StoreKind.all, ["suspended", "revoked"])
    func certificateOfAStoppedPhoneIsNotRecorded(kind: StoreKind, state: String) async throws {
        let fixture = try await Fixture.set(kind)
        let (rig, phone) = (fixture.rig, fixture.lost.credential)
        try rig.execute("UPDATE device SET state = '\(state)' WHERE push_token = 'lost'")
        let before = try rig.count("SELECT count(*) FROM certificate")
        await #expect(throws: Refusal.unauthenticated) {
            try await rig.on { relay in
                try await relay.change(pushToken: nil, name: nil, renews: true, by: phone)
            }
        }
        let new = NewCertificate(
            device: phone.id, user: fixture.kept.user, serial: "01", expiresAt: rig.time.now() + .seconds(60),
            at: rig.time.now())
        let isRecorded = try await rig.on { [store = rig.store] relay in
            try await store.record(new, as: relay.operations.new())
        }
        #expect(!isRecorded)
        #expect(try rig.count("SELECT count(*) FROM certificate") == before)
    }

    /// A phone that renews without end would make the list long, and keep the authority busy.
    @Test(arguments: StoreKind.all) func renewalsOfOnePhoneAreLimited(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind)
        let (rig, phone) = (fixture.rig, fixture.lost.credential)
        let renew = {
            try await rig.on { relay in
                try await relay.change(pushToken: nil, name: nil, renews: true, by: phone)
            }
        }
        let count = "SELECT count(*) FROM certificate c JOIN device d ON d.id = c.device_id WHERE d.push_token = 'lost'"
        var refusals: [Refusal] = []
        for _ in 0..<20 {
            if let refused = await refusal({ try await renew() }) { refusals.append(refused) }
        }
        #expect(try rig.count(count) == 8)
        // Two were there before.
        #expect(refusals.count == 14)
        for refused in refusals {
            guard case .limited(let wait) = refused, wait > .zero else {
                Issue.record("\(refused)")
                return
            }
        }
        // When the first ones have expired, there is room for others.
        rig.time.advance(by: .seconds(86_400 * Relay.certificateDays + 1))
        _ = try await renew()
        #expect(try rig.count(count) == 9)
    }

    /// Without the lock of the user's row, requests at the same time would count each other late.
    @Test(arguments: StoreKind.all) func renewalsAtTheSameTimeAreCounted(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind)
        let (rig, phone) = (fixture.rig, fixture.lost.credential)
        let renewed = try await rig.on { relay in
            await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        (try? await relay.change(pushToken: nil, name: nil, renews: true, by: phone)) != nil
                    }
                }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
        }
        #expect(renewed == 6)
        let count = "SELECT count(*) FROM certificate c JOIN device d ON d.id = c.device_id WHERE d.push_token = 'lost'"
        #expect(try rig.count(count) == 8)
    }

    /// A phone that was bound without an answer could sign nothing, and could not be bound again.
    @Test(arguments: StoreKind.all) func enrolmentWithoutRoomUsesNoCode(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop("shop", ["number": "0", "further-factors": "website"])
        let person = try await Person.registered("ada", at: shop, rig)
        let phone = try TestPhone(pushToken: "same")
        var code = person.code
        for _ in 0..<8 {
            #expect(await person.bind(phone, code).bound != nil)
            code = try await person.furtherCode()
        }
        let unused = "SELECT count(*) FROM activation WHERE used_at IS NULL"
        let before = try rig.count(unused)
        guard case .failure(.limited) = await person.bind(phone, code) else {
            Issue.record("the ninth enrolment is not refused")
            return
        }
        #expect(try rig.count(unused) == before)
    }

    /// Otherwise two reads might leave out others, and the list would be signed anew each time.
    @Test(arguments: StoreKind.all) func allReadsLeaveOutTheSame(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind)
        let (rig, now) = (fixture.rig, fixture.rig.time.now())
        try rig.execute("DELETE FROM certificate")
        for serial in ["0a", "0c", "0b", "0f", "0e"] {
            try rig.execute(
                """
                INSERT INTO certificate (serial, device_id, created_at, expires_at, is_on_hold) VALUES
                ('\(serial)', x'\(fixture.kept.id.text)', '\(now.sql)', '\((now + .seconds(60)).sql)', 0)
                """)
        }
        try rig.execute("UPDATE website SET state = 'disabled'")
        let found = try await rig.on { [store = rig.store] _ in
            try await store.revokedCertificates(at: now, limit: 2)
        }
        #expect(found.certificates.map(\.serial) == ["0e", "0f"])
    }

    @Test func recordedCertificateIsRecordedOnce() async throws {
        let fixture = try await Fixture.set(.file)
        let (rig, phone) = (fixture.rig, fixture.lost.credential)
        let new = NewCertificate(
            device: phone.id, user: phone.user, serial: "01", expiresAt: rig.time.now() + .seconds(60),
            at: rig.time.now())
        for _ in 0..<2 {
            let isRecorded = try await rig.on { [store = rig.store] relay in
                try await store.record(new, as: relay.operations.new())
            }
            #expect(isRecorded)
        }
        #expect(try rig.count("SELECT count(*) FROM certificate WHERE serial = '01'") == 1)
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'device.certificate'") == 5)
    }
}

/// The cost of the list, however often it is asked for.
@Suite(.mayBlock) struct RevocationListCostTests {
    /// An authority that counts its lists, and may be away.
    private final class CountingAuthority: PhoneCertificates {
        private let authority: CertificateAuthority
        private let state = Mutex((lists: 0, fault: CertificateFailure?.none))

        init(at now: Timestamp) throws {
            authority = try CertificateAuthority.create(commonName: "phones", days: 10, at: now)
        }

        var lists: Int { state.withLock { $0.lists } }
        func fail(_ fault: CertificateFailure?) { state.withLock { $0.fault = fault } }

        func certificate(
            _ order: CertificateOrder, at now: Timestamp
        ) async throws(CertificateFailure) -> String {
            try await authority.certificate(order, at: now)
        }

        func revocationList(
            _ revoked: [RevokedCertificate], at now: Timestamp
        ) async throws(CertificateFailure) -> [UInt8] {
            if let fault = state.withLock({ $0.fault }) { throw fault }
            state.withLock { $0.lists += 1 }
            return try authority.phoneRevocationList(revoked, at: now)
        }
    }

    private let rig: RelayRig
    private let authority: CountingAuthority
    private let relay: Relay

    init() async throws {
        rig = try await RelayRig(.file)
        authority = try CountingAuthority(at: rig.time.now())
        relay = try RelayRig.relay(
            over: rig.store, push: nil, phones: authority, time: rig.time, randomness: SystemRandomness(),
            log: Log(minimum: .debug, time: rig.time, sink: rig.sink), isAlone: false
        ) { _ in }
    }

    private func list() async throws -> RevocationList {
        try await rig.on { [relay] _ in try await relay.revocationList() }
    }

    /// Adds a revoked certificate.
    private func revoke(_ serial: String) throws {
        let (now, end) = (rig.time.now(), rig.time.now() + .seconds(86_400 * 50))
        try rig.execute(
            """
            INSERT INTO certificate (serial, device_id, created_at, expires_at, revoked_at, is_on_hold) VALUES
            ('\(serial)', x'00112233445566778899aabbccddeeff', '\(now.sql)', '\(end.sql)', '\(now.sql)', 0)
            """)
    }

    @Test func listIsMadeOnceForEachChangeAndOnceAnHour() async throws {
        let first = try await list()
        #expect(authority.lists == 1)
        // The store is not read again within the interval.
        try revoke("0a")
        rig.time.advance(by: RevocationList.interval - .milliseconds(1))
        #expect(try await list() == first)
        rig.time.advance(by: .milliseconds(1))
        let second = try await list()
        #expect(try ReadRevocationList(second.der).entries == ["0a": false] && authority.lists == 2)
        for _ in 0..<5 {
            rig.time.advance(by: .seconds(600))
            #expect(try await list() == second)
        }
        rig.time.advance(by: .seconds(600))
        #expect(try await list() != second)
        #expect(authority.lists == 3)
    }

    /// A row that somebody changed by SQL must not keep the others from those who need them.
    @Test(arguments: [
        "UPDATE certificate SET serial = 'zz' WHERE serial = '0b'",
        "UPDATE certificate SET serial = '' WHERE serial = '0b'",
        "UPDATE certificate SET serial = hex(zeroblob(21)) WHERE serial = '0b'",
        "UPDATE certificate SET revoked_at = '3000-01-01' WHERE serial = '0b'",
    ])
    func malformedRowIsSkipped(change: String) async throws {
        try revoke("0a")
        try revoke("0b")
        #expect(try ReadRevocationList(try await list().der).entries == ["0a": false, "0b": false])
        #expect(rig.sink.lines.count { $0.contains("event=crl.skipped") } == 0)
        try rig.execute(change)
        for _ in 0..<3 {
            rig.time.advance(by: RevocationList.interval)
            #expect(try ReadRevocationList(try await list().der).entries == ["0a": false])
        }
        // The log names it with each list that is made, not with each request.
        #expect(rig.sink.lines.count { $0.contains("level=error event=crl.skipped count=1") } == 1)
    }

    @Test func requestsAtTheSameTimeShareOneList() async throws {
        let relay = relay
        let lists = try await rig.on { _ in
            try await withThrowingTaskGroup(of: RevocationList.self) { group in
                for _ in 0..<20 { group.addTask { try await relay.revocationList() } }
                var lists: [RevocationList] = []
                for try await list in group { lists.append(list) }
                return lists
            }
        }
        #expect(lists.count == 20 && lists.allSatisfy { $0 == lists[0] } && authority.lists == 1)
    }

    /// Requests that waited for one that failed get the last list, too.
    @Test func failureServesTheLastListToAll() async throws {
        let last = try await list()
        try revoke("0a")
        authority.fail(.unavailable("away"))
        rig.time.advance(by: RevocationList.interval)
        let relay = relay
        let lists = try await rig.on { _ in
            try await withThrowingTaskGroup(of: RevocationList.self) { group in
                for _ in 0..<20 { group.addTask { try await relay.revocationList() } }
                var lists: [RevocationList] = []
                for try await list in group { lists.append(list) }
                return lists
            }
        }
        #expect(lists.count == 20 && lists.allSatisfy { $0 == last })
        // The failure counts for a second, and then the relay tries again.
        let tries = { rig.sink.lines.count { $0.contains("event=crl.failed") } }
        #expect(tries() == 1)
        rig.time.advance(by: .seconds(1))
        #expect(try await list() == last && tries() == 2)
    }

    @Test(arguments: [CertificateFailure.unavailable("away"), .failed("broken")])
    func lastListIsServedWhileItIsValid(fault: CertificateFailure) async throws {
        authority.fail(fault)
        await #expect(throws: Refusal.unavailable) { try await list() }
        authority.fail(nil)
        rig.time.advance(by: RevocationList.pause)
        let last = try await list()
        try revoke("0a")
        authority.fail(fault)
        rig.time.advance(by: RevocationList.life - .seconds(1))
        #expect(try await list() == last)
        rig.time.advance(by: .seconds(1))
        await #expect(throws: Refusal.unavailable) { try await list() }
        authority.fail(nil)
        rig.time.advance(by: RevocationList.pause)
        #expect(try ReadRevocationList(try await list().der).entries == ["0a": false])
    }

    /// The rest of the list is what protects a website, so it is made in any case.
    @Test(arguments: [false, true]) func tooManyCertificatesLeaveOutTheOldest(hasMalformed: Bool) async throws {
        let (now, end) = (rig.time.now(), rig.time.now() + .seconds(86_400 * 50))
        // A list with the most entries, and one more.
        try rig.execute(
            """
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(RevocationList.mostEntries))
            INSERT INTO certificate (serial, device_id, created_at, expires_at, revoked_at, is_on_hold)
            SELECT printf('f%031x', i), x'00112233445566778899aabbccddeeff', '\(now.sql)',
            '\(end.sql)', '\(now.sql)', 1 FROM n
            """)
        let longest = try await list().der
        #expect(try ReadRevocationList(longest).entries.count == RevocationList.mostEntries)
        #expect(longest.count < 4 << 20)
        rig.time.advance(by: RevocationList.life)
        try revoke("0a")
        // A row that is no entry uses a place.
        if hasMalformed { try revoke("zz") }
        let entries = try ReadRevocationList(try await list().der).entries
        #expect(entries.count == RevocationList.mostEntries && entries["0a"] == false)
        #expect(rig.sink.lines.contains { $0.contains("event=crl.shortened") && $0.contains("level=error") })
    }
}
