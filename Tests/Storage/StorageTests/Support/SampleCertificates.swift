import Domain
import Relay
import World

@testable import Storage

extension Sample {
    /// Runs every statement about certificates. The changes of phones write them, too.
    static func runCertificates(on store: Store, _ operation: () -> Domain.Operation) async throws {
        let new = NewCertificate(device: id(23), user: id(23), serial: "ff", expiresAt: later, at: now)
        _ = try await store.record(new, as: operation())
        _ = try await store.livingCertificates(of: id(23), user: id(23), at: now)
        for state in [DeviceState.suspended, .active] {
            var change = DeviceChange(id(23), of: id(23), by: .website, at: now)
            change.state = state
            _ = try await store.change(change, as: operation())
        }
        _ = try await store.revokedCertificates(at: now, limit: 10)
        _ = try await store.run(DeviceCertificates.all(of: id(23)))
    }
}
