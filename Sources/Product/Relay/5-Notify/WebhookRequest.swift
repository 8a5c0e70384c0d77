import Domain
import Webhooks
import World

/// What leaves for a website: which it is, what it says, and that it is true.
public struct WebhookRequest: Sendable {
    /// The same at every try, so that the website can tell a repetition.
    public let id: OutboxEntryID
    /// As the operator wrote it down.
    public let url: String
    /// Type and signature. To be sent as they are, with exactly this body: it is signed.
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
    /// - Parameter now: part of what is signed. Receivers refuse what is old: every try is signed anew.
    public init(
        _ id: OutboxEntryID, to url: String, _ body: [UInt8], signedWith secrets: WebhookSecrets, at now: Timestamp
    ) {
        // An id's text is always 32 hexadecimal digits, of our own making: it could be refused only by a bug of ours.
        guard let name = WebhookID(id.text) else { fatalError("hexadecimal names no webhook") }
        let head = WebhookHeaders(id: name, body: body, at: now, secrets: secrets.valid(at: now))
        self.init(
            id: id, url: url, fields: [("content-type", "application/json")] + head.fields, body: body)
    }
}

/// Carries calls. An implementation answers within fifteen seconds, whatever the other side does, and decides nothing: what
/// follows from an outcome is the relay's matter.
public protocol WebhookCourier: Sendable {
    func call(_ call: WebhookRequest) async -> WebhookOutcome
}
