import JSON
import Webhooks
import World

/// Receives the relay's webhooks: Standard Webhooks 1.0.
///
/// The signature is checked over the bytes as they arrived, before one of them is parsed. Never let a
/// user in by a webhook alone: pass its `data` to `TwoefayRelay.check`, with the login that this browser
/// began. Tested in `ConformanceTests.swift` and `WebsiteTests.swift`.
///
///     let inbox = try WebhookInbox(secrets: [secret], store: store)
///     let status = await inbox.receive(fields, body) { event in … }.status
public struct WebhookInbox: Sendable {
    /// A webhook whose signature is right. Ignore types that you do not know: the relay may add some.
    public struct Event: Sendable, Equatable {
        /// The id of the event, the same for every attempt to deliver it.
        public let id: String
        /// The type, such as `login.decided`.
        public let type: String
        /// The time of the event, as RFC 3339.
        public let timestamp: String
        /// The content, as the relay sent it.
        public let data: JSONObject
    }

    private let check: WebhookCheck
    private let store: any Store
    private let time: any TimeSource

    /// Creates a receiver.
    ///
    /// - Parameters:
    ///   - secrets: the lines of `shop.secret` and, while the secret changes, of `shop.secret.new`.
    ///   - store: the store that remembers which webhooks were handled.
    ///   - time: the clock; tests pass another one.
    public init(
        secrets: [String], store: any Store, time: any TimeSource = SystemTime()
    ) throws(CallFault) {
        var read: [WebhookSecret] = []
        for secret in secrets {
            guard let secret = WebhookSecret(secret.trimmed) else {
                throw .unable("a secret of webhooks is whsec_ and base64 of at least 24 bytes")
            }
            read.append(secret)
        }
        guard !read.isEmpty else { throw .unable("a receiver of webhooks needs a secret") }
        check = WebhookCheck(secrets: read)
        self.store = store
        self.time = time
    }

    /// Returns the event of a webhook. If this throws, answer 400 and do nothing else.
    ///
    /// - Parameters:
    ///   - fields: the header fields of the request.
    ///   - body: the bytes of the body as they were received.
    public func verify(
        _ fields: some Sequence<(name: String, value: String)>, _ body: [UInt8]
    ) throws(WebhookFault) -> Event {
        let head = try WebhookHeaders(fields)
        guard head.id.text.isRelayID else { throw .malformed(.id) }
        try check.verify(head, body: body, at: time.now())
        guard let object = (try? JSONReader.read(body))?.object, let type = object["type"]?.string,
            let timestamp = object["timestamp"]?.string, let data = object["data"]?.object
        else { throw .body("type, timestamp or data is missing") }
        return Event(id: head.id.text, type: type, timestamp: timestamp, data: data)
    }

    /// Handles a webhook. Answer with the status: 204, 400, or 500 after an error of the store or of
    /// `act`. After 500 the relay sends the webhook again.
    ///
    /// A phone that was unbound is unpinned. Its user stays one who had a phone: the relay, which signs
    /// webhooks, must not make room for another one.
    ///
    /// - Parameter act: what the website does with the event. It runs before the id is stored, so no
    ///   event is lost. It may run twice, also at once: let it have the same effect then.
    public func receive(
        _ fields: some Sequence<(name: String, value: String)>, _ body: [UInt8],
        act: (Event) async throws -> Void = { _ in }
    ) async -> (status: Int, error: (any Error)?) {
        let event: Event
        do throws(WebhookFault) {
            event = try verify(fields, body)
        } catch {
            return (400, error)
        }
        do {
            guard try await !store.hasSeen(event.id) else { return (204, nil) }
            if event.type == "device.unbound", let token = event.data["token"]?.string, token.isRelayID,
                let device = event.data["device"]?.string, device.isRelayID
            {
                try await store.unpin(device, ofToken: token)
            }
            try await act(event)
            try await store.see(event.id, at: time.now().seconds)
            return (204, nil)
        } catch {
            return (500, error)
        }
    }
}
