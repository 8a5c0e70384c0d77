import Crypto
import Domain
import Storage
import Synchronization
import TestSupport
import Testing
import World

@testable import Relay

/// The end of connections, at every relay, whose key or certificate was revoked by any process.
struct RevocationTests {
    private static func store(_ rig: RelayRig, _ query: @escaping @Sendable (Operation) -> Query<Bool>) async throws {
        let (store, operation) = (rig.store, rig.relay.operations.new())
        let done = try await blocking { try store.runBlocking(query(operation)) }
        #expect(done)
    }

    private static func reported(of rig: RelayRig) -> Reports {
        let reported = Reports()
        rig.relay.onRevocation { reported.add($0) }
        return reported
    }

    private final class Reports: Sendable {
        private let all = Mutex<[RevokedIdentity]>([])
        func add(_ revoked: RevokedIdentity) { all.withLock { $0.append(revoked) } }
        func take() -> [RevokedIdentity] {
            all.withLock { all in
                defer { all = [] }
                return all
            }
        }
    }

    @Test(arguments: [StoreKind.memory, .mariadb]) func revokedKeyIsReportedOnce(_ kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let (shop, bank) = (try await rig.website("shop"), try await rig.website("bank"))
        let (reported, time) = (Self.reported(of: rig), rig.time)
        try await rig.on { await $0.watchRevocations() }
        #expect(reported.take() == [])
        // Connections with the key of another website stay.
        let key = try #require(try await rig.on { try await $0.store.keys(of: shop.id, at: time.now()) }).keys
        #expect(key.count == 1)
        try await Self.store(rig) { Websites.revokeKeys(of: shop.id, key[0], at: time.now(), as: $0) }
        try await rig.on { await $0.watchRevocations() }
        #expect(reported.take() == [.website(name: "shop", keys: [])])
        try await Self.store(rig) { Websites.set(bank.id, isDisabled: true, at: time.now(), as: $0) }
        for _ in 0..<15 {
            time.advance(by: .seconds(1))
            try await rig.on { await $0.watchRevocations() }
        }
        #expect(reported.take() == [.website(name: "bank", keys: [])])
        #expect(try await rig.on { try await $0.store.website(named: "bank", key: key[0], at: time.now()) } == nil)
        // After it is enabled again, the website has its key.
        try await Self.store(rig) { Websites.set(bank.id, isDisabled: false, at: time.now(), as: $0) }
        #expect(try await rig.on { try await $0.store.keys(of: bank.id, at: time.now()) }?.keys.count == 1)
    }

    /// The connections with the former keys end when the keys do: at once, or later.
    @Test(arguments: [StoreKind.memory, .mariadb]) func endOfAKeyIsReportedOnce(_ kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        let (reported, time) = (Self.reported(of: rig), rig.time)
        func look() async throws -> [RevokedIdentity] {
            try await rig.on { await $0.watchRevocations() }
            return reported.take()
        }
        func renew(_ name: String, end: Timestamp) async throws -> [UInt8] {
            let key = SHA256.hash(Array(name.utf8))
            let certificate = WebsiteCertificate(
                notBefore: time.now(), notAfter: time.now() + .seconds(86_400), issuer: key, serial: "0a")
            let renewal = Websites.Renewal(
                of: shop.id, thumbprint: key, certificate: certificate, othersEnd: end, at: time.now())
            try await Self.store(rig) { Websites.renew(renewal, as: $0) }
            return key
        }
        #expect(try await look() == [])
        // The operator's clock is late.
        let second = try await renew("second", end: time.now() - .seconds(2))
        #expect(try await look() == [.website(name: "shop", keys: [second])])
        let third = try await renew("third", end: time.now() + .seconds(20))
        for _ in 0..<19 {
            time.advance(by: .seconds(1))
            #expect(try await look() == [])
        }
        time.advance(by: .seconds(1))
        #expect(try await look() == [.website(name: "shop", keys: [third])])
        for _ in 0..<70 {
            time.advance(by: .seconds(1))
            #expect(try await look() == [])
        }
    }

    /// A change in a delayed transaction becomes visible after later ones.
    @Test func lateRevocationIsNotMissed() {
        var marks = RevocationCursor()
        func at(_ second: Int64) -> Instant { Instant(nanoseconds: second * 1_000_000_000) }
        #expect(marks.start == nil)
        marks.looked(to: 5000, at: at(0))
        #expect(marks.start == 4000)
        for second in Int64(1)...10 { marks.looked(to: 5000 + second, at: at(second)) }
        // Changes of the last ten seconds may still appear.
        #expect(marks.start == 4000)
        let first = marks.isNew(5003)
        let again = marks.isNew(5003)
        #expect(first && !again)
        for second in Int64(11)...40 { marks.looked(to: 5000 + second, at: at(second)) }
        #expect(marks.start == 5030)
        // Time in which the relay stood still does not count: the transactions stood still, too.
        marks.looked(to: 5041, at: at(4000))
        #expect(marks.start == 5032)
    }
}
