import Attestation
import Domain
import World

/// The store port for the claims of phones that are pages. They are written together with the phone
/// (`BindStore.bind`).
public protocol WebPhoneStore: Sendable {
    /// Returns the claims of a phone; nil if it made none, or was bound by an earlier version.
    func webPhone(_ device: DeviceID) async throws(StoreFailure) -> WebPhone?
    /// Returns the claims of all phones of a user.
    func webPhones(of user: UserID) async throws(StoreFailure) -> [DeviceID: WebPhone]
}

extension Relay {
    /// The claims of a user's phones that are pages, for their website.
    public func webPhones(_ devices: [DeviceView], of user: UserID) async throws(Refusal) -> [DeviceID: WebPhone] {
        guard devices.contains(where: { $0.platform == .web }) else { return [:] }
        do throws(Refusal) {
            return try await withStore("web phones") { () async throws(StoreFailure) in
                try await store.webPhones(of: user)
            }
        } catch {
            // A row that is not genuine was logged. It must not hide the user's phones.
            guard error == .broken else { throw error }
            return [:]
        }
    }
}
