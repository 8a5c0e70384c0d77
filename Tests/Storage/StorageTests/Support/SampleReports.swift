import Crypto
import Domain
import Relay
import World

@testable import Storage

extension Sample {
    /// Runs the statements about reports, PINs and keys of phones.
    static func runPhones(on store: Store, _ operation: () -> Domain.Operation) async throws {
        try await runReports(on: store)
        try await runPINs(on: store, operation)
        try await runPhoneCodes(on: store, operation)
    }

    /// Runs every statement about reports of phones.
    static func runReports(on store: Store) async throws {
        let phone = PhoneCredential(
            id: id(15), user: id(15), key: key(15), publicKey: [],
            website: WebsiteRow(id: website, name: "shop", displayName: "Shop", policy: "{}"), failures: 0,
            failedAt: nil, isCertified: true)
        var report = DeviceReport(reportedAt: now, receivedAt: now)
        report.battery = 50
        _ = try await store.store(report, of: phone)
        _ = try await store.run(DeviceReports.last(of: phone.id))
        _ = try await store.devicesOneByOne(of: phone.user, at: now)
    }

    /// Delivers the secret of a phone's codes, and records a tagged certificate.
    static func runPhoneCodes(on store: Store, _ operation: () -> Domain.Operation) async throws {
        let phone = PhoneCredential(
            id: id(17), user: id(17), key: key(17), publicKey: [],
            website: WebsiteRow(id: website, name: "shop", displayName: "Shop", policy: "{}"), failures: 0,
            failedAt: nil, isCertified: true)
        for since in [now, nil] {
            let factor = NewFactor(
                id: id(10_017), user: id(17), kind: .totp, state: .active,
                sealed: SealedSecret(bytes: [1], key: "1"), period: 30, at: now)
            let delivery = SecretDelivery(
                phone: phone, agreement: [4], askedAt: now, factor: factor, repeatableSince: since, at: now)
            _ = try await store.deliver(delivery, as: operation())
        }
        let certificate = TaggedCertificate(
            device: id(17), tag: "sign", isRaw: false, serial: "4f", pem: "PEM", askedAt: now, createdAt: now,
            expiresAt: later)
        let new = NewTaggedCertificate(certificate, of: phone, key: try P256PrivateKey.generate().publicKey)
        _ = try await store.check(new)
        _ = try await store.record(new, as: operation())
        _ = try await store.userToShow(named: "user-17", of: website, at: now)
        _ = try await store.taggedCertificates(of: id(17))
        _ = try await store.signer(id(17), tag: "sign", of: website, at: now)
    }
}
