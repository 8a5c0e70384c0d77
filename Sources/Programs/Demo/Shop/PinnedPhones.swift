import Bytes
import TwoefayClient
import World

/// What the website keeps of one customer's phones: the keys that are theirs, and the secrets of activations that a phone
/// may still have read.
struct PinnedPhones {
    /// The relay's name for the customer.
    let token: String
    private(set) var phones: [PinnedPhone] = []
    /// The oldest first.
    private var secrets: [(k: Secret, until: Instant)] = []
    private static let mostSecrets = 16

    init(token: String) { self.token = token }

    mutating func expect(_ k: Secret, until end: Instant) {
        secrets.append((k, end))
        if secrets.count > Self.mostSecrets { secrets.removeFirst() }
    }

    func isExpecting(at now: Instant) -> Bool { secrets.contains { $0.until > now } }

    /// Takes a phone's key for the customer's where the phone itself says so. From then on nobody can put another in its
    /// place. A phone that proves nothing is passed over, and what the relay itself has no more is not believed any more.
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
