import Bytes
import World

/// The reason why a webhook must not be trusted. The receiver answers 400 and does nothing else.
public enum WebhookFault: Error, Sendable, Equatable {
    case missing(WebhookHeaders.Field)
    case repeated(WebhookHeaders.Field)
    case malformed(WebhookHeaders.Field)
    /// The webhook was sent too long ago: it may be a replay by an attacker.
    case tooOld
    /// The webhook was sent in the receiver's future: one of the clocks is wrong.
    case tooNew
    /// No secret matches the signature, or the webhook was changed.
    case signature
    /// The webhook is authentic, but the body is not a valid event of its type.
    case body(String)
}

extension WebhookFault: CustomStringConvertible {
    public var description: String {
        switch self {
        case .missing(let field): "\(field.rawValue) is missing"
        case .repeated(let field): "\(field.rawValue) appears more than once"
        case .malformed(let field): "\(field.rawValue) is malformed"
        case .tooOld: "the webhook was sent too long ago"
        case .tooNew: "the webhook was sent in the future; check the clock"
        case .signature: "the webhook is not signed with any of the secrets, or was changed"
        case .body(let why): "the body is not an event: \(why)"
        }
    }
}

/// The check that a receiver makes of every webhook before it reads the body.
public struct WebhookCheck: Sendable {
    /// The tolerance that the reference libraries of Standard Webhooks use.
    public static let tolerance = Duration.seconds(300)

    private let secrets: [WebhookSecret]
    private let tolerance: Duration

    /// Creates a check.
    ///
    /// - Parameter secrets: the secret of this website; two during a key rotation.
    /// - Parameter tolerance: the maximum difference between the clocks of sender and receiver, in
    ///   either direction, including the transfer time.
    public init(secrets: [WebhookSecret], tolerance: Duration = WebhookCheck.tolerance) {
        self.secrets = secrets
        self.tolerance = tolerance
    }

    /// Verifies that headers and body are as they were sent. The same webhook may arrive again
    /// under the same id with a new time, so the receiver must store the ids that it has processed.
    ///
    /// - Parameter body: the bytes as received, not decoded and encoded again.
    public func verify(_ head: WebhookHeaders, body: [UInt8], at now: Timestamp) throws(WebhookFault) {
        let age = now - head.sentAt
        guard age <= tolerance else { throw .tooOld }
        guard age >= .zero - tolerance else { throw .tooNew }
        let content = head.content(body)
        var matches = false
        // All pairs are compared, so that the duration reveals nothing.
        for secret in secrets {
            let own = WebhookSignature(of: content, secret)
            for signature in head.signatures where Secret.matches(own.code, signature.code) { matches = true }
        }
        guard matches else { throw .signature }
    }

    /// Verifies a webhook from the header fields as received.
    @discardableResult
    public func verify(
        _ fields: some Sequence<(name: String, value: String)>, body: [UInt8], at now: Timestamp
    ) throws(WebhookFault) -> WebhookHeaders {
        let head = try WebhookHeaders(fields)
        try verify(head, body: body, at: now)
        return head
    }
}
