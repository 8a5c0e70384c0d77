import Domain
import Relay
import World

@testable import Storage

extension Sample {
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
}
