import Webhooks
import World

/// Verifies the relay's webhooks, and passes each event to the website once.
///
/// It accepts only webhooks that were signed with one of the website's secrets. The relay may
/// deliver an event more than once, under the same id. The website therefore stores the ids that it
/// has processed. Tested in `WebhookReceiverTests.swift`.
///
///     let inbox = WebhookReceiver(secrets: [secret])
///     let event = try await inbox.event(fields: fields, body: body, spend: ids.insert)
///     guard let event else { return 204 }
///     if case .loginDecided(_, let outcome) = event.what { … }
public struct WebhookReceiver: Sendable {
    private let check: WebhookCheck
    private let time: any TimeSource

    /// Creates a receiver.
    ///
    /// - Parameters:
    ///   - secrets: the secrets that `twoefay website add` wrote, as `WebhookSecret("whsec_…")`.
    ///     During a change of the secret, pass the new and the previous one.
    ///   - tolerance: the largest accepted difference between the clocks of the relay and the
    ///     website.
    ///   - time: the clock; tests pass another one.
    public init(
        secrets: [WebhookSecret], tolerance: Duration = WebhookCheck.tolerance, time: any TimeSource = SystemTime()
    ) {
        check = WebhookCheck(secrets: secrets, tolerance: tolerance)
        self.time = time
    }

    /// Verifies one request and returns its event.
    ///
    /// If this throws, answer 400 and do nothing else. Otherwise answer 2xx within 15 seconds,
    /// whatever the result of processing the event. Do work that takes longer after the answer.
    ///
    /// - Parameters:
    ///   - fields: the header fields of the request.
    ///   - body: the bytes of the body as they were received.
    ///   - spend: stores an id permanently, and returns false if the id was already stored. It is
    ///     called last. Store the id in the same transaction in which the website acts on the
    ///     event: if that transaction fails, the relay's next attempt is new again.
    /// - Returns: nil if the event was processed before. Answer as you did then.
    public func event(
        fields: some Sequence<(name: String, value: String)>, body: [UInt8],
        spend: (_ id: String) async throws -> Bool
    ) async throws -> WebhookEvent? {
        let event = try verified(fields: fields, body: body)
        return try await spend(event.id) ? event : nil
    }

    /// Verifies one request and returns its event, without a check for repetition.
    ///
    /// Use this if the website detects repetitions itself: a webhook may arrive any number of times
    /// under the same id.
    public func verified(
        fields: some Sequence<(name: String, value: String)>, body: [UInt8]
    ) throws(WebhookFault) -> WebhookEvent {
        let head = try check.verify(fields, body: body, at: time.now())
        return try WebhookEvent(id: head.id.text, body: body)
    }
}
