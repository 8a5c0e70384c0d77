import Bytes
import World

/// What a webhook's sender and its receiver share: a key of HMAC-SHA256 that is written `whsec_…` and never printed.
public struct WebhookSecret: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Standard Webhooks allows from 192 bits to 512.
    public static let sizes = 24...64
    private static let prefix = "whsec_"

    public let key: Secret

    /// Nil for a key that is too short or too long.
    public init?(key: Secret) {
        guard Self.sizes.contains(key.count) else { return nil }
        self.key = key
    }

    /// Reads `whsec_` and base64. As in the libraries of others, prefix and padding may be missing: what is copied by hand
    /// loses them. Nil for anything else; the key of another scheme (`whsk_…`, `whpk_…`) is no base64.
    public init?(_ text: some StringProtocol) {
        var text = String(text)
        if text.hasPrefix(Self.prefix) { text.removeFirst(Self.prefix.utf8.count) }
        if !text.utf8.contains(UInt8(ascii: "=")) {
            text += String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        }
        guard let bytes = Base64.decode(text) else { return nil }
        self.init(key: Secret(bytes))
    }

    /// 256 bits of chance.
    public static func make(_ randomness: any Randomness) -> WebhookSecret {
        WebhookSecret(checked: Secret(randomness.bytes(32)))
    }

    private init(checked key: Secret) { self.key = key }

    /// As it is handed to the website, once.
    public var text: Secret { Secret(utf8: Self.prefix + Base64.encode(key.reveal())) }

    public var description: String { key.description }
    public var debugDescription: String { key.debugDescription }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// The secrets of one website: one, and beside it the one before while the website changes over.
public struct WebhookSecrets: Sendable {
    public struct Former: Sendable {
        public let secret: WebhookSecret
        public let until: Timestamp

        public init(_ secret: WebhookSecret, until: Timestamp) {
            self.secret = secret
            self.until = until
        }
    }

    /// So long a website has for changing over.
    public static let overlap = Duration.seconds(86_400)

    public let current: WebhookSecret
    public let former: Former?

    public init(current: WebhookSecret, former: Former? = nil) {
        self.current = current
        self.former = former
    }

    /// What is signed with: whoever has either of them can check it.
    public func valid(at now: Timestamp) -> [WebhookSecret] {
        guard let former, now < former.until else { return [current] }
        return [current, former.secret]
    }

    /// There are never more than two: what was former already is forgotten. Without an overlap, for a secret that others
    /// have seen, the new one is alone at once.
    public func rotated(
        to new: WebhookSecret, at now: Timestamp, overlap: Duration = WebhookSecrets.overlap
    ) -> WebhookSecrets {
        WebhookSecrets(current: new, former: overlap > .zero ? Former(current, until: now + overlap) : nil)
    }
}
