import Bytes
import World

/// The secret shared by sender and receiver of webhooks: an HMAC-SHA256 key in the form `whsec_…`.
/// It is never printed.
public struct WebhookSecret: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The permitted key sizes in bytes; Standard Webhooks permits 192 to 512 bits.
    public static let sizes = 24...64
    private static let prefix = "whsec_"

    public let key: Secret

    /// Creates a secret; nil if the key is too short or too long.
    public init?(key: Secret) {
        guard Self.sizes.contains(key.count) else { return nil }
        self.key = key
    }

    /// Reads `whsec_` and base64. As in the reference libraries, prefix and padding may be missing,
    /// since they get lost when copied by hand. Returns nil for anything else; keys of other
    /// schemes (`whsk_…`, `whpk_…`) are not base64.
    public init?(_ text: some StringProtocol) {
        var text = String(text)
        if text.hasPrefix(Self.prefix) { text.removeFirst(Self.prefix.utf8.count) }
        if !text.utf8.contains(UInt8(ascii: "=")) {
            text += String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        }
        guard let bytes = Base64.decode(text) else { return nil }
        self.init(key: Secret(bytes))
    }

    /// Generates a secret of 256 random bits.
    public static func make(_ randomness: any Randomness) -> WebhookSecret {
        WebhookSecret(checked: Secret(randomness.bytes(32)))
    }

    private init(checked key: Secret) { self.key = key }

    /// The text form, which the website receives once.
    public var text: Secret { Secret(utf8: Self.prefix + Base64.encode(key.reveal())) }

    public var description: String { key.description }
    public var debugDescription: String { key.debugDescription }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// The secrets of one website: the current one, and during a rotation also the former one.
public struct WebhookSecrets: Sendable {
    public struct Former: Sendable {
        public let secret: WebhookSecret
        public let until: Timestamp

        public init(_ secret: WebhookSecret, until: Timestamp) {
            self.secret = secret
            self.until = until
        }
    }

    /// The time that a website has to switch to the new secret.
    public static let overlap = Duration.seconds(86_400)
    /// The time that the former secret stays valid after a fetch of the new one. An answer may be lost,
    /// and one of several processes of a website may miss some of its fetches.
    public static let overlapAfterFetch = Duration.seconds(7 * 86_400)
    /// The end of a former secret that stays valid until the website has fetched the new one.
    public static let untilFetched = Timestamp(seconds: 253_402_214_400)

    public let current: WebhookSecret
    public let former: Former?

    public init(current: WebhookSecret, former: Former? = nil) {
        self.current = current
        self.former = former
    }

    /// Returns the secrets to sign with, so that a receiver that has either one can verify.
    public func valid(at now: Timestamp) -> [WebhookSecret] {
        guard let former, now < former.until else { return [current] }
        return [current, former.secret]
    }

    /// Returns the secrets after a rotation. There are never more than two: an earlier former
    /// secret is dropped. If nobody has fetched the present secret, it is dropped instead, and the
    /// former one, which the website has, is kept.
    ///
    /// - Parameter overlap: the validity of the kept secret from now on; zero ends it at once, for a
    ///   secret that is compromised.
    public func rotated(
        to new: WebhookSecret, at now: Timestamp, overlap: Duration = WebhookSecrets.overlap
    ) -> WebhookSecrets {
        let kept = if let former, former.until == Self.untilFetched { former.secret } else { current }
        return WebhookSecrets(current: new, former: overlap > .zero ? Former(kept, until: now + overlap) : nil)
    }
}
