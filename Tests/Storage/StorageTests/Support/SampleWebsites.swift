import Domain

@testable import Relay
@testable import Storage

extension Sample {
    static let insertKey = Statement(
        "INSERT INTO website_key (thumbprint, website_id, created_at) VALUES (:thumbprint, :website, :now)")

    /// Renews and removes websites, as the operator's tool does.
    static func runWebsites(on store: Store, _ operation: () -> Domain.Operation) async throws {
        try await runUsage(on: store)
        try await store.record(pinSequence: 1, of: id(15))
        _ = try await store.run(StatedPins.missing(1))
        let website: WebsiteID = id(7)
        let certificate = WebsiteCertificate(notBefore: now, notAfter: later, issuer: key(70), serial: "00")
        for predecessor in [nil, website] {
            let new = Websites.New(
                id: predecessor == nil ? website : id(8), name: "inn", displayName: "Inn", policy: "{}", webhook: nil,
                keyThumbprint: key(predecessor == nil ? 71 : 72), certificate: certificate, predecessor: predecessor,
                createdAt: now)
            _ = try await store.run(Websites.add(new, as: operation()))
            guard predecessor == nil else { continue }
            let renewal = Websites.Renewal(
                of: website, thumbprint: key(73), certificate: certificate, othersEnd: later, at: now)
            _ = try await store.run(Websites.renew(renewal, as: operation()))
            try await store.record([WebsiteKeyUse(thumbprint: key(73), certificate: certificate, at: now)])
            _ = try await store.certificates(ofKey: key(73), of: website, at: now)
            let again = WebsiteRenewal(
                website: website, key: key(73),
                certificate: WebsiteCertificate(notBefore: now, notAfter: later, issuer: key(70), serial: "01"),
                changes: ChangedValues(), at: now)
            _ = try await store.renew(again, as: operation())
            _ = try await store.run(Websites.keys(of: website))
            _ = try await store.websiteExpiries(at: now)
            _ = try await store.run(Websites.unmoved(to: key(70), at: now))
            try await store.run(Websites.stopKeys(of: website, [key(73)], at: now))
            _ = try await store.run(Websites.endKeys(of: website, at: now, now: now, as: operation()))
            _ = try await store.run(Websites.set(website, isDisabled: true, at: now, as: operation()))
            _ = try await store.run(WebsiteRemoval.users(of: website, limit: 10))
            _ = try await store.run(WebsiteRemoval.finish(website, at: now, as: operation()))
        }
    }
}
