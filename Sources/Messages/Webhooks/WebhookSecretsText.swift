import Bytes
import World

/// The stored form: the texts of one or two secrets, newest first, separated by a space.
extension WebhookSecrets {
    public var text: Secret {
        let texts = [current.text] + (former.map { [$0.secret.text] } ?? [])
        return Secret(Array(texts.map { $0.reveal() }.joined(separator: [UInt8(ascii: " ")])))
    }

    /// Reads the stored form; nil if the text is invalid. A second secret without a known end of
    /// validity is ignored.
    public init?(text: Secret, previousUntil: Timestamp?) {
        var secrets: [WebhookSecret] = []
        for part in text.reveal().split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false) {
            guard let secret = WebhookSecret(String(decoding: part, as: UTF8.self)) else { return nil }
            secrets.append(secret)
        }
        guard let current = secrets.first, secrets.count <= 2 else { return nil }
        let former = secrets.count == 2 ? secrets.last : nil
        self.init(
            current: current,
            former: former.flatMap { secret in previousUntil.map { Former(secret, until: $0) } })
    }
}
