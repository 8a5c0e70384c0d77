import Bytes
import Crypto
import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// The keys of a website while its certificate is renewed, and after the website was removed.
struct WebsiteKeyTests {
    private static let authority = SHA256.hash(Array("authority".utf8))
    private static let day = Duration.seconds(86_400)

    private static func certificate(_ rig: RelayRig, days: Int, by issuer: [UInt8] = authority) -> WebsiteCertificate {
        WebsiteCertificate(
            notBefore: rig.time.now(), notAfter: rig.time.now() + day * days, issuer: issuer, serial: "0a")
    }

    private static func run<Answer: Sendable>(
        _ rig: RelayRig, _ query: @escaping @Sendable (Operation) -> Query<Answer>
    ) async throws -> Answer {
        let (store, operation) = (rig.store, rig.relay.operations.new())
        return try await blocking { try store.runBlocking(query(operation)) }
    }

    private static func isAccepted(_ key: [UInt8], _ rig: RelayRig) async throws -> Bool {
        do {
            _ = try await rig.on { try await $0.website(named: "shop", key: key) }
            return true
        } catch Refusal.unauthenticated {
            return false
        }
    }

    @Test(arguments: [StoreKind.memory, .mariadb]) func bothKeysAreValidUntilTheFormerEnds(
        _ kind: StoreKind
    ) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        let (old, new) = (SHA256.hash(Array("shop".utf8)), SHA256.hash(Array("new".utf8)))
        let (now, end) = (rig.time.now(), rig.time.now() + .seconds(100))
        let renewal = Websites.Renewal(
            of: shop.id, thumbprint: new, certificate: Self.certificate(rig, days: 40), othersEnd: end, at: now)
        #expect(try await Self.run(rig) { Websites.renew(renewal, as: $0) })
        #expect(try await Self.isAccepted(old, rig))
        #expect(try await Self.isAccepted(new, rig))
        let keys = try await Self.run(rig) { _ in Websites.keys(of: shop.id) }
        #expect(keys.map(\.thumbprint).contains(new) && keys.count == 2)
        #expect(keys.first { $0.thumbprint == old }?.endsAt == end)
        #expect(keys.first { $0.thumbprint == new }?.endsAt == nil)
        #expect(keys.first { $0.thumbprint == new }?.certificate == renewal.certificate)
        rig.time.advance(by: .seconds(99))
        #expect(try await Self.isAccepted(old, rig))
        rig.time.advance(by: .seconds(1))
        #expect(try await !Self.isAccepted(old, rig))
        #expect(try await Self.isAccepted(new, rig))
    }

    @Test func keyOfAnotherWebsiteIsNotTaken() async throws {
        let rig = try await RelayRig(.memory)
        let (shop, bank) = (try await rig.website("shop"), try await rig.website("bank"))
        let ofBank = SHA256.hash(Array("bank".utf8))
        let renewal = Websites.Renewal(
            of: shop.id, thumbprint: ofBank, certificate: Self.certificate(rig, days: 40), at: rig.time.now())
        #expect(try await !Self.run(rig) { Websites.renew(renewal, as: $0) })
        #expect(try await Self.run(rig) { _ in Websites.keys(of: bank.id) }.count == 1)
        #expect(try await !Self.isAccepted(ofBank, rig))
    }

    @Test(arguments: [StoreKind.memory, .mariadb]) func useOfAKeyIsRecorded(_ kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        // The rig itself looks the website up.
        try await rig.on { await $0.recordWebsiteKeyUse() }
        let first = try await Self.run(rig) { _ in Websites.keys(of: shop.id) }
        #expect(first.map(\.usedAt) == [rig.time.now()])
        rig.time.advance(by: .seconds(60))
        try await rig.on { await $0.recordWebsiteKeyUse() }
        #expect(try await Self.run(rig) { _ in Websites.keys(of: shop.id) } == first)
        #expect(try await Self.isAccepted(SHA256.hash(Array("shop".utf8)), rig))
        try await rig.on { await $0.recordWebsiteKeyUse() }
        #expect(try await Self.run(rig) { _ in Websites.keys(of: shop.id) }.map(\.usedAt) == [rig.time.now()])
    }

    @Test(arguments: [StoreKind.memory, .mariadb]) func websiteHasMovedOnceItUsedANewKey(
        _ kind: StoreKind
    ) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        _ = try await rig.website("bank")
        let (next, key) = (SHA256.hash(Array("next".utf8)), SHA256.hash(Array("new".utf8)))
        let now = rig.time.now()
        func unmoved() async throws -> [Websites.Unmoved] {
            let time = rig.time.now()
            return try await Self.run(rig) { _ in Websites.unmoved(to: next, at: time) }
        }
        try await rig.on { await $0.recordWebsiteKeyUse() }
        #expect(try await unmoved().map(\.name) == ["bank", "shop"])
        #expect(try await unmoved().allSatisfy { !$0.hasNew && $0.lastOldUse == now })
        let renewal = Websites.Renewal(
            of: shop.id, thumbprint: key, certificate: Self.certificate(rig, days: 40, by: next), at: now)
        #expect(try await Self.run(rig) { Websites.renew(renewal, as: $0) })
        #expect(try await unmoved().map(\.hasNew) == [false, true])
        #expect(try await Self.isAccepted(key, rig))
        try await rig.on { await $0.recordWebsiteKeyUse() }
        // A server of the website has moved, and another may not have.
        #expect(try await unmoved().map(\.usesNew) == [false, true])
        rig.time.advance(by: Self.day)
        #expect(try await unmoved().map(\.name) == ["bank"])
        #expect(try await Self.isAccepted(SHA256.hash(Array("shop".utf8)), rig))
        try await rig.on { await $0.recordWebsiteKeyUse() }
        #expect(try await unmoved().map(\.name) == ["bank", "shop"])
    }

    /// Relays that write the same keys in different orders would wait for each other.
    @Test func usesAreWrittenInOneOrderAndOnceAMinute() {
        let uses = UsedWebsiteKeys()
        let start = Timestamp(seconds: 1_800_000_000)
        let keys = (0..<50).map { SHA256.hash(Array("\($0)".utf8)) }
        for key in keys { uses.record(WebsiteKeyUse(thumbprint: key, at: start)) }
        let first = uses.taken(at: start)
        #expect(first.count == 50)
        #expect(zip(first, first.dropFirst()).allSatisfy { $0.thumbprint.lexicographicallyPrecedes($1.thumbprint) })
        uses.record(WebsiteKeyUse(thumbprint: keys[7], at: start + .seconds(10)))
        #expect(uses.taken(at: start + .seconds(59)).isEmpty)
        let second = [WebsiteKeyUse(thumbprint: keys[7], at: start + .seconds(10))]
        #expect(uses.taken(at: start + .seconds(60)) == second)
        // A write that failed is repeated without a pause.
        uses.restore(second)
        #expect(uses.taken(at: start + .seconds(61)) == second)
        uses.record(WebsiteKeyUse(thumbprint: keys[7], at: start - .seconds(500)))
        #expect(uses.taken(at: start - .seconds(500)).count == 1)
    }

    @Test(arguments: [StoreKind.memory, .mariadb]) func theCertificateThatIsValidLongestCounts(
        _ kind: StoreKind
    ) async throws {
        let rig = try await RelayRig(kind)
        let (shop, bank) = (try await rig.website("shop"), try await rig.website("bank"))
        let now = rig.time.now()
        func renew(_ website: Website, _ name: String, days: Int, end: Timestamp? = nil) async throws {
            let renewal = Websites.Renewal(
                of: website.id, thumbprint: SHA256.hash(Array(name.utf8)),
                certificate: Self.certificate(rig, days: days), othersEnd: end, at: now)
            #expect(try await Self.run(rig) { Websites.renew(renewal, as: $0) })
        }
        func ends() async throws -> [WebsiteExpiry]? { try await rig.on { await $0.websiteExpiries() } }
        #expect(try await ends() == [])
        try await renew(shop, "first", days: 10)
        try await renew(bank, "other", days: 20)
        #expect(
            try await ends() == [
                WebsiteExpiry(website: "shop", expiresAt: now + Self.day * 10),
                WebsiteExpiry(website: "bank", expiresAt: now + Self.day * 20),
            ])
        try await renew(shop, "second", days: 30)
        #expect(try await ends()?.map(\.website) == ["bank", "shop"])
        // A key that ends early does not count longer.
        try await renew(shop, "third", days: 25, end: now + Self.day)
        #expect(try await ends()?.last == WebsiteExpiry(website: "shop", expiresAt: now + Self.day * 25))
        #expect(try await Self.run(rig) { Websites.set(bank.id, isDisabled: true, at: now, as: $0) })
        #expect(try await ends()?.map(\.website) == ["shop"])
    }

    @Test(arguments: [StoreKind.memory, .mariadb]) func removalNeedsADisabledWebsiteWithoutUsers(
        _ kind: StoreKind
    ) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop", webhook: "https://shop.example/")
        let (_, _, phone) = try await rig.enrolled("ada", at: shop)
        let now = rig.time.now()
        func finish() async throws -> Bool {
            try await Self.run(rig) { WebsiteRemoval.finish(shop.id, at: now, as: $0) }
        }
        #expect(try await !finish())
        #expect(try await Self.run(rig) { Websites.set(shop.id, isDisabled: true, at: now, as: $0) })
        #expect(try await !finish())
        func users() async throws -> [UserID] {
            try await Self.run(rig) { _ in WebsiteRemoval.users(of: shop.id, limit: 5) }
        }
        #expect(try await users() == [phone.user])
        // Somebody needs the website again: its users are left alone.
        #expect(try await Self.run(rig) { Websites.set(shop.id, isDisabled: false, at: now, as: $0) })
        #expect(try await users().isEmpty)
        #expect(try await !finish())
        #expect(try await Self.run(rig) { Websites.set(shop.id, isDisabled: true, at: now, as: $0) })
        #expect(
            try await Self.run(rig) { UserDeletion.delete(phone.user, of: shop.id, by: .operator, at: now, as: $0) }
                == [])
        #expect(try await finish())
        #expect(try await Self.run(rig) { _ in Websites.keys(of: shop.id) }.isEmpty)
        #expect(try await Self.run(rig) { _ in WebhookEndpoints.find(shop.id) } == nil)
        // It cannot come back, nor be renewed.
        #expect(try await !Self.run(rig) { Websites.set(shop.id, isDisabled: false, at: now, as: $0) })
        let renewal = Websites.Renewal(
            of: shop.id, thumbprint: Self.authority, certificate: Self.certificate(rig, days: 4), at: now)
        #expect(try await !Self.run(rig) { Websites.renew(renewal, as: $0) })
        // Another website gets its name only if the removed one is named.
        for (predecessor, isAdded) in [(nil, false), (shop.id, true)] as [(WebsiteID?, Bool)] {
            let new = Websites.New(
                id: rig.relay.operations.draw(), name: "shop", displayName: "Shop", policy: "{}", webhook: nil,
                keyThumbprint: SHA256.hash(Array("shop".utf8)), predecessor: predecessor, createdAt: now)
            #expect(try await Self.run(rig) { Websites.add(new, as: $0) } == isAdded)
        }
        #expect(try await Self.isAccepted(SHA256.hash(Array("shop".utf8)), rig))
        let all = try await Self.run(rig) { _ in Websites.list() }
        #expect(all.map(\.name) == ["shop", "~" + shop.id.text])
        #expect(all.map(\.users) == [0, 0])
    }

    @Test(arguments: [StoreKind.memory, .mariadb]) func restoredRowOfARemovedWebsiteIsOutdated(
        _ kind: StoreKind
    ) async throws {
        let rig = try await RelayRig(kind)
        let (shop, time) = (try await rig.website("shop"), rig.time)
        func outdated() async throws -> [String] {
            try await Self.run(rig) { _ in OutdatedRow.all }.map { "\($0.table) \($0.event)" }
        }
        #expect(try await Self.run(rig) { Websites.set(shop.id, isDisabled: true, at: time.now(), as: $0) })
        let former = try rig.text("SELECT hex(operation) AS value FROM website")
        time.advance(by: .seconds(1))
        #expect(try await Self.run(rig) { WebsiteRemoval.finish(shop.id, at: time.now(), as: $0) })
        #expect(try await outdated() == [])
        try rig.forge("UPDATE website SET state = 'disabled', operation = x'\(former)'")
        #expect(try await outdated() == ["website website.removed"])
    }

    @Test func websiteInUseKeepsItsName() async throws {
        let rig = try await RelayRig(.memory)
        let shop = try await rig.website("shop")
        let new = Websites.New(
            id: rig.relay.operations.draw(), name: "shop", displayName: "Shop", policy: "{}", webhook: nil,
            keyThumbprint: SHA256.hash(Array("other".utf8)), predecessor: shop.id, createdAt: rig.time.now())
        #expect(try await !Self.run(rig) { Websites.add(new, as: $0) })
        #expect(try await Self.isAccepted(SHA256.hash(Array("shop".utf8)), rig))
        #expect(try await !Self.isAccepted(SHA256.hash(Array("other".utf8)), rig))
    }
}
