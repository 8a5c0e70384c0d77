import Domain
import Webhooks
import World

/// A webhook as it is sent: its id, URL, signed header fields and body.
public struct WebhookRequest: Sendable {
    /// The id, the same at every attempt. The website can recognise a repetition by it.
    public let id: OutboxEntryID
    /// The URL as the operator configured it.
    public let url: String
    /// The header fields with the content type and the signature. They must be sent unchanged, with
    /// exactly this body, because it is signed.
    public let fields: [(name: String, value: String)]
    public let body: [UInt8]

    public init(id: OutboxEntryID, url: String, fields: [(name: String, value: String)], body: [UInt8]) {
        self.id = id
        self.url = url
        self.fields = fields
        self.body = body
    }
}

extension WebhookRequest {
    /// Signs a webhook for one attempt.
    ///
    /// - Parameters:
    ///   - trace: the trace that the webhook belongs to. It is not signed, and proves nothing.
    ///   - now: the time of the attempt, which is signed too. Receivers refuse old signatures, so
    ///     each attempt is signed anew.
    public init(
        _ id: OutboxEntryID, to url: String, _ body: [UInt8], signedWith secrets: WebhookSecrets,
        trace: TraceParent? = nil, at now: Timestamp
    ) {
        // An id's text is always 32 hexadecimal digits that the relay made itself. Only a bug could
        // make it invalid.
        guard let name = WebhookID(id.text) else { fatalError("hexadecimal names no webhook") }
        let head = WebhookHeaders(id: name, body: body, at: now, secrets: secrets.valid(at: now))
        self.init(
            id: id, url: url,
            fields: [("content-type", "application/json")] + head.fields
                + (trace.map { [(TraceParent.field, $0.text)] } ?? []),
            body: body)
    }
}

/// A courier of webhooks. An implementation answers within fifteen seconds, whatever the other side
/// does. It decides nothing: the relay decides what follows from an outcome.
public protocol WebhookCourier: Sendable {
    func send(_ webhook: WebhookRequest) async -> WebhookOutcome
}
