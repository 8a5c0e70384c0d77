import Webhooks
import World

/// Where a website takes the relay's webhooks. It believes nothing that was not signed with one of its secrets, and acts on
/// each event once.
///
///     let inbox = WebhookReceiver(secrets: [secret])
///     guard let event = try await inbox.event(fields: fields, body: body, spend: ids.insert) else { return 204 }
///     if case .loginDecided(_, let outcome) = event.what { … }
public struct WebhookReceiver: Sendable {
    private let check: WebhookCheck
    private let time: any TimeSource

    /// - Parameters:
    ///   - secrets: as `twoefay website add` wrote it (`WebhookSecret("whsec_…")`); while the website changes over, the new
    ///     one and the one before.
    ///   - tolerance: so far the two machines' clocks may be apart.
    public init(
        secrets: [WebhookSecret], tolerance: Duration = WebhookCheck.tolerance, time: any TimeSource = SystemTime()
    ) {
        check = WebhookCheck(secrets: secrets, tolerance: tolerance)
        self.time = time
    }

    /// What a request says. A fault is answered with 400, and nothing else is done. Whatever came of the event, answer 2xx
    /// within 15 seconds: what takes longer is done later.
    ///
    /// - Parameters:
    ///   - fields: of the request's header.
    ///   - body: the bytes as they came.
    ///   - spend: keeps an id for good; false if it was kept before. It is called last. Best in the transaction in which the
    ///     website acts: then an event whose handling failed comes again, and is new.
    /// - Returns: nil for an event that was there before: answer as you did then.
    public func event(
        fields: some Sequence<(name: String, value: String)>, body: [UInt8],
        spend: (_ id: String) async throws -> Bool
    ) async throws -> WebhookEvent? {
        let event = try verified(fields: fields, body: body)
        return try await spend(event.id) ? event : nil
    }

    /// The same for who looks after repetitions alone: a webhook may come any number of times, under the same id.
    public func verified(
        fields: some Sequence<(name: String, value: String)>, body: [UInt8]
    ) throws(WebhookFault) -> WebhookEvent {
        let head = try check.verify(fields, body: body, at: time.now())
        return try WebhookEvent(id: head.id.text, body: body)
    }
}
