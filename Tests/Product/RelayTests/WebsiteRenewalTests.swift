import Bytes
import Crypto
import Domain
import JSON
import Log
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// The renewal of a website's certificate by the website itself, for the same key.
struct WebsiteRenewalTests {
    /// A website `shop` with a key whose certificate the authority has signed, at a relay that renews.
    private struct Shop: Sendable {
        static let day = Duration.seconds(86_400)

        let rig: RelayRig
        let website: Website
        let authority: CertificateAuthority
        let key: P256PrivateKey
        /// The certificate of the connection.
        var shown: WebsiteCertificate

        var thumbprint: [UInt8] { key.publicKey.spkiThumbprint }

        /// - Parameter age: the days since the certificate was issued.
        init(_ kind: StoreKind, age: Int = 600) async throws {
            rig = try await RelayRig(kind)
            website = try await rig.website("shop")
            authority = try CertificateAuthority.create(commonName: "websites", days: 4000, at: rig.time.now())
            key = try P256PrivateKey.generate()
            shown = WebsiteCertificate(
                try authority.websiteCertificate(
                    for: "shop", key: key.publicKey, at: rig.time.now() - Self.day * age),
                issuer: authority.keyThumbprint)
            rig.relay.replace(websites: authority)
            let renewal = Websites.Renewal(
                of: website.id, thumbprint: thumbprint, certificate: shown, othersEnd: rig.time.now() + .seconds(1),
                at: rig.time.now())
            #expect(try await run { Websites.renew(renewal, as: $0) })
            rig.time.advance(by: .seconds(1))
        }

        func run<Answer: Sendable>(
            _ query: @escaping @Sendable (Domain.Operation) -> Query<Answer>
        ) async throws -> Answer {
            let (store, operation) = (rig.store, rig.relay.operations.new())
            return try await blocking { try store.runBlocking(query(operation)) }
        }

        /// Renews the certificate. Returns the new one.
        func renewed(_ pem: [UInt8]? = nil, at relay: Relay? = nil) async throws -> Certificate {
            let pem = try pem ?? SigningRequest(commonName: "ignored", key: key).pem()
            let answer = try await rig.on { own in
                try await (relay ?? own).renewCertificate(
                    of: website, key: thumbprint, shown, request: String(decoding: pem, as: UTF8.self))
            }
            let certificate = try Certificate(pem: Array(answer.pem.utf8))
            #expect(certificate.notAfter == answer.expiresAt)
            return certificate
        }

        func refusal(_ pem: [UInt8]? = nil, at relay: Relay? = nil) async throws -> Refusal? {
            do {
                _ = try await renewed(pem, at: relay)
                return nil
            } catch let refusal as Refusal {
                return refusal
            }
        }

        var stored: Websites.Key {
            get async throws {
                let keys = try await run { _ in Websites.keys(of: website.id) }
                return try #require(keys.first { $0.thumbprint == thumbprint })
            }
        }

        /// Authenticates with this certificate, and records that.
        func use(_ certificate: WebsiteCertificate) async throws {
            _ = try await rig.on { try await $0.website(named: "shop", key: thumbprint, certificate) }
            try await rig.on { await $0.recordWebsiteKeyUse() }
        }

        /// Returns the issued certificate as a connection with it shows it.
        func shown(_ certificate: Certificate, by issuer: CertificateAuthority? = nil) -> WebsiteCertificate {
            WebsiteCertificate(certificate, issuer: (issuer ?? authority).keyThumbprint)
        }
    }

    @Test(arguments: [StoreKind.memory, .mariadb]) func keyGetsAnotherCertificate(_ kind: StoreKind) async throws {
        let shop = try await Shop(kind)
        let new = try await shop.renewed()
        #expect(new.uris == ["twoefay:website:shop"] && new.spkiThumbprint == shop.thumbprint)
        #expect(new.notAfter - shop.rig.time.now() == Shop.day * 825)
        let stored = try await shop.stored
        #expect(stored.certificate == shop.shown(new) && stored.former == [shop.shown])
        let audited = "SELECT count(*) FROM audit WHERE event = 'website.renewed' AND outcome = 'website'"
        #expect(try shop.rig.count(audited) == 1)
        let changes = try shop.rig.text(
            """
            SELECT d.changes AS value FROM audit_detail d JOIN audit a ON a.operation = d.operation
            WHERE a.event = 'website.renewed' AND a.outcome = 'website'
            """)
        let serial = try JSONReader.read(Array(changes.utf8)).object?["serial"]?.object
        #expect(serial?["before"] == .string(shop.shown.serial) && serial?["after"] == .string(new.serial))
        #expect(shop.rig.sink.lines.contains { $0.contains("event=website.renewed") && $0.contains(new.serial) })
        // The answer may have been lost, so the warnings end when the new certificate is used.
        func ends() async throws -> [Timestamp]? {
            try await shop.rig.on { await $0.websiteExpiries() }?.map(\.expiresAt)
        }
        #expect(try await ends() == [shop.shown.notAfter])
        try await shop.use(shop.shown(new))
        #expect(try await ends() == [new.notAfter])
    }

    /// A command that revokes a key first reads all its certificates, so there must be no further ones.
    @Test(arguments: [StoreKind.memory, .mariadb]) func stoppedKeyGetsNone(_ kind: StoreKind) async throws {
        let shop = try await Shop(kind)
        try await shop.run { _ in
            Websites.stopKeys(of: shop.website.id, [shop.thumbprint], at: shop.rig.time.now())
        }
        #expect(try await shop.refusal() != nil)
        #expect(try await shop.stored.certificate == shop.shown)
    }

    /// A connection may be older than the end of its certificate, which TLS has checked at its beginning.
    @Test func expiredCertificateIsNotRenewed() async throws {
        let shop = try await Shop(.memory)
        shop.rig.time.advance(by: Shop.day * 226)
        #expect(try await shop.refusal() != nil)
    }

    @Test(arguments: [StoreKind.memory, .mariadb]) func otherRequestsAreRefused(_ kind: StoreKind) async throws {
        let shop = try await Shop(kind)
        let pem = try SigningRequest(commonName: "shop", key: shop.key).pem()
        let other = try SigningRequest(commonName: "shop", key: try P256PrivateKey.generate()).pem()
        guard case .invalid(let faults)? = try await shop.refusal(other) else { throw Unexpected() }
        #expect(faults.first?.message.english.contains("twoefay website renew") == true, "\(faults)")
        for text in [pem + pem, pem + other, [], Array("x".utf8), Array(pem.dropLast(60)), try shop.key.pem().reveal()]
        {
            guard case .invalid? = try await shop.refusal(text) else { throw Unexpected() }
        }
        #expect(try await shop.stored.former == [])
        shop.rig.relay.replace(websites: nil)
        guard case .forbidden(let why)? = try await shop.refusal() else { throw Unexpected() }
        #expect(why.english.contains("tls.websites_renewal"))
    }

    @Test func certificateIsRenewedInItsLastThird() async throws {
        let shop = try await Shop(.memory, age: 549)
        guard case .conflict(let faults)? = try await shop.refusal() else { throw Unexpected() }
        let from = shop.shown.renewableFrom
        #expect(faults.first?.message.english.contains(from.rfc3339) == true, "\(faults)")
        shop.rig.time.advance(by: from - shop.rig.time.now() - .milliseconds(1))
        guard case .conflict? = try await shop.refusal() else { throw Unexpected() }
        shop.rig.time.advance(by: .milliseconds(1))
        #expect(try await shop.refusal() == nil)
    }

    @Test(arguments: [StoreKind.memory, .mariadb]) func lostAnswersAreRepeatedButNotWithoutEnd(
        _ kind: StoreKind
    ) async throws {
        let shop = try await Shop(kind)
        for _ in 0..<WebsiteRenewal.most {
            _ = try await shop.renewed()
            shop.rig.time.advance(by: .seconds(1))
        }
        #expect(try await shop.stored.former.count == WebsiteRenewal.most)
        guard case .limited(let pause)? = try await shop.refusal() else { throw Unexpected() }
        #expect(pause > Shop.day * 6 && pause <= Shop.day * 7)
        shop.rig.time.advance(by: pause)
        _ = try await shop.renewed()
        guard case .limited? = try await shop.refusal() else { throw Unexpected() }
        // All of them are known for the list, until the key goes.
        #expect(try await shop.stored.certificates.count == WebsiteRenewal.most + 2)
        let (website, now) = (shop.website.id, shop.rig.time.now())
        #expect(try await shop.run { Websites.revokeKeys(of: website, shop.thumbprint, at: now, as: $0) })
        #expect(try shop.rig.count("SELECT count(*) AS value FROM website_certificate") == 0)
    }

    /// Requests at the same time, which all have found room.
    @Test(arguments: [StoreKind.memory, .mariadb]) func requestsAtTheSameTimeAreCounted(
        _ kind: StoreKind
    ) async throws {
        let shop = try await Shop(kind)
        let count = try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<30 { group.addTask { try await shop.refusal() == nil } }
            return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(count == WebsiteRenewal.most)
        #expect(try await shop.stored.former.count == WebsiteRenewal.most)
    }

    @Test(arguments: [StoreKind.memory, .mariadb]) func onlyAKeyInUseIsRenewed(_ kind: StoreKind) async throws {
        let shop = try await Shop(kind)
        let (website, start) = (shop.website.id, shop.rig.time.now())
        #expect(try await shop.run { Websites.set(website, isDisabled: true, at: start, as: $0) })
        #expect(try await shop.refusal() == .unauthenticated)
        #expect(try await shop.run { Websites.set(website, isDisabled: false, at: start, as: $0) })
        let other = Websites.Renewal(
            of: website, thumbprint: SHA256.hash([1]), certificate: shop.shown, othersEnd: start + .seconds(10),
            at: start)
        #expect(try await shop.run { Websites.renew(other, as: $0) })
        _ = try await shop.renewed()
        shop.rig.time.advance(by: .seconds(10))
        #expect(try await shop.refusal() == .unauthenticated)
        // The row of the key is checked.
        let bank = try await shop.rig.website("bank")
        try shop.rig.forge("UPDATE website_key SET ends_at = NULL")
        #expect(try await shop.refusal() == .broken)
        #expect(try await shop.run { Websites.revokeKeys(of: website, nil, at: start, as: $0) })
        #expect(try await shop.refusal() == .unauthenticated)
        #expect(try await shop.run { _ in Websites.keys(of: bank.id) }.count == 1)
    }

    @Test(arguments: [StoreKind.memory, .mariadb]) func websiteMovesToTheNextAuthorityByItself(
        _ kind: StoreKind
    ) async throws {
        let shop = try await Shop(kind, age: 0)
        #expect(try await shop.refusal() != nil)
        let next = try CertificateAuthority.create(commonName: "next", days: 4000, at: shop.rig.time.now())
        shop.rig.relay.replace(websites: next)
        func unmoved() async throws -> [Websites.Unmoved] {
            let now = shop.rig.time.now()
            return try await shop.run { _ in Websites.unmoved(to: next.keyThumbprint, at: now) }
        }
        try await shop.use(shop.shown)
        #expect(try await unmoved().map(\.hasNew) == [false])
        shop.rig.time.advance(by: .seconds(100))
        let new = shop.shown(try await shop.renewed(), by: next)
        // The new certificate was not used yet, and a lost answer can be repeated.
        #expect(try await unmoved().map(\.usesNew) == [false])
        #expect(try await unmoved().first?.lastOldUse == shop.rig.time.now() - .seconds(100))
        shop.rig.time.advance(by: .seconds(100))
        let again = shop.shown(try await shop.renewed(), by: next)
        try await shop.use(again)
        // Another server has not moved.
        shop.rig.time.advance(by: .seconds(100))
        try await shop.use(shop.shown)
        #expect(try await unmoved().map(\.usesNew) == [true])
        #expect(try await shop.stored.usedAt == shop.rig.time.now())
        shop.rig.time.advance(by: Shop.day)
        #expect(try await unmoved() == [])
        #expect(try await shop.stored.certificate == again)
        #expect(try await shop.stored.former.contains(new))
        // Each use was noted for its own certificate.
        let later = "SELECT count(*) FROM website_key k JOIN website_certificate c ON c.thumbprint = k.thumbprint"
        #expect(try shop.rig.count("\(later) WHERE c.used_at > k.used_at") == 1)
    }

    private struct Unexpected: Error {}
}
