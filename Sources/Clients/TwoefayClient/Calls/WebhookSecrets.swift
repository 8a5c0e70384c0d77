import JSON
import World

extension RelayClient {
    /// The secrets with which the relay signs webhooks to this website.
    public struct WebhookSecretSet: Sendable, Equatable {
        /// The secrets, the newest first: `whsec_` and base64. A webhook that one of them verifies is
        /// genuine.
        public let secrets: [String]
        /// The end of the second secret; nil if there is one secret.
        public let previousUntil: Timestamp?
        /// The time when the newest secret was made.
        public let madeAt: Timestamp
        /// The time after which the relay makes another one; nil if it does not.
        public let nextAt: Timestamp?
    }

    /// Fetches the secrets of webhooks. **From the first call on, the relay replaces the secret by
    /// itself**, so a website that calls this once must call it again, best once a day. The secret
    /// that it has stays valid until a week after it has fetched the next one.
    public func webhookSecrets() async throws(CallFault) -> WebhookSecretSet {
        let answer = try await call("GET", "/webhook/secrets")
        let objects = try answer.objects("secrets")
        var secrets: [String] = []
        for object in objects { secrets.append(try object.text("secret")) }
        guard !secrets.isEmpty else { throw .odd("secrets is empty") }
        return WebhookSecretSet(
            secrets: secrets, previousUntil: try objects.dropFirst().first?.timestamp("until"),
            madeAt: try answer.timestamp("made_at"), nextAt: try answer.timestamp(ifAny: "next_at"))
    }
}
