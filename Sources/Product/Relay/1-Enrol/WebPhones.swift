import Attestation
import Domain
import World

/// The store port for the claims of phones that are pages. They are written when a binding makes the
/// phone (`BindStore.bind`), and never change.
public protocol WebPhoneStore: Sendable {
    /// Returns the page of a phone; nil if it made no claims, or was bound by an earlier version.
    func webPhone(_ device: DeviceID) async throws(StoreFailure) -> BoundPage?
    /// Returns the pages of all phones of a user.
    func webPhones(of user: UserID) async throws(StoreFailure) -> [DeviceID: BoundPage]
}

/// The page that a phone is, as it was when the phone was bound.
public struct BoundPage: Sendable, Equatable {
    public let claims: WebPhone
    /// Whether the page came from a host that was none of the relay's. It is stored, so that a relay
    /// with another name does not raise its former pages.
    public let isApart: Bool

    public init(claims: WebPhone, isApart: Bool) {
        self.claims = claims
        self.isApart = isApart
    }
}

extension Relay {
    /// The claims of a user's phones that are pages, for their website.
    public func webPhones(_ devices: [DeviceView], of user: UserID) async throws(Refusal) -> [DeviceID: BoundPage] {
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

    /// Refuses a bound phone that would become another page, or a page that would become another
    /// phone. A script in the page can use the phone's key, and must not get rid of the credential
    /// with an activation code.
    func requireSamePage(_ device: NewDevice, as bound: Progress.Phone?) async throws(Refusal) {
        guard let bound, bound.platform == .web || device.platform == .web else { return }
        var isSame = bound.platform == device.platform
        if isSame {
            let page = try await withStore("web phone") { () async throws(StoreFailure) in
                try await store.webPhone(device.id)
            }
            isSame = page?.claims == device.page?.claims
        }
        guard isSame else {
            throw .conflict([
                FieldFault(
                    "proof", .mismatch,
                    LocalizedText(
                        "is of a phone that is bound with another page or credential: another page needs another key",
                        de: "gehört zu einem Telefon, das mit einer anderen Seite oder einem anderen Passkey gebunden "
                            + "ist: Eine andere Seite braucht einen anderen Schlüssel"))
            ])
        }
    }

    /// The hosts whose pages the relay serves, in small letters.
    var ownHosts: [String] {
        [settings.origin, settings.browsers?.origin].compactMap { $0.flatMap { WebPhone.host(of: $0.lowercased()) } }
    }
}
