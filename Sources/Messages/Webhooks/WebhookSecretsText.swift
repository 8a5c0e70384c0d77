import Bytes
import World

/// As they are kept: the texts of one secret or of two, the newest first, a space between them.
extension WebhookSecrets {
    public var text: Secret {
        let texts = [current.text] + (former.map { [$0.secret.text] } ?? [])
        return Secret(Array(texts.map { $0.reveal() }.joined(separator: [UInt8(ascii: " ")])))
    }

    /// Nil for what is no such text. Of a second one nobody knows until when it is valid: it is taken for nothing.
    public init?(text: Secret, formerUntil: Timestamp?) {
        var secrets: [WebhookSecret] = []
        for part in text.reveal().split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false) {
            guard let secret = WebhookSecret(String(decoding: part, as: UTF8.self)) else { return nil }
            secrets.append(secret)
        }
        guard let current = secrets.first, secrets.count <= 2 else { return nil }
        let former = secrets.count == 2 ? secrets.last : nil
        self.init(
            current: current,
            former: former.flatMap { secret in formerUntil.map { Former(secret, until: $0) } })
    }
}
