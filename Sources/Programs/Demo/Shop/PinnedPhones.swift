import Bytes
import TwoefayClient
import World

/// The website's data about one customer's phones: the pinned keys, and the secrets of activations
/// that may still be in use.
///
/// Invariant: a key is pinned only after the phone's binding was verified with a secret that the
/// relay never saw. A pinned key is never replaced. Tested in `WebsiteTests.swift`.
struct PinnedPhones {
    /// The relay's id of the customer.
    let token: String
    private(set) var phones: [PinnedPhone] = []
    /// The secrets of activations, the oldest first.
    private var secrets: [(k: Secret, until: Instant)] = []
    private static let mostSecrets = 16

    init(token: String) { self.token = token }

    mutating func expect(_ k: Secret, until end: Instant) {
        secrets.append((k, end))
        if secrets.count > Self.mostSecrets { secrets.removeFirst() }
    }

    func isExpecting(at now: Instant) -> Bool { secrets.contains { $0.until > now } }

    /// Updates the pinned keys from the relay's list of devices.
    ///
    /// It pins the key of each new device whose binding one of the secrets verifies, and ignores a
    /// device without a valid binding. It drops the keys of phones that the relay no longer lists
    /// as bound.
    mutating func look(at devices: [Device], by bindings: BindingCheck, at now: Instant) {
        secrets.removeAll { $0.until <= now }
        let bound = devices.filter { $0.state != .revoked && $0.state != .waiting }
        phones.removeAll { phone in !bound.contains { $0.id == phone.device } }
        for device in bound where !phones.contains(where: { $0.device == device.id }) {
            for (place, secret) in secrets.enumerated() {
                guard let phone = try? bindings.pinned(device, token: token, k: secret.k) else { continue }
                phones.append(phone)
                secrets.remove(at: place)
                break
            }
        }
    }

    mutating func unpin(_ device: String) { phones.removeAll { $0.device == device } }
}
