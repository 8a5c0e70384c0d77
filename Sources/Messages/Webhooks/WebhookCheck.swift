import Bytes
import World

/// Why a webhook is not to be believed. Whoever receives it answers 400 and does nothing.
public enum WebhookFault: Error, Sendable, Equatable {
    case missing(WebhookHeaders.Field)
    case repeated(WebhookHeaders.Field)
    case malformed(WebhookHeaders.Field)
    /// Sent too long ago: perhaps seen on its way then, and sent once more by somebody else.
    case tooOld
    /// Sent later than it is here: one of the clocks is wrong.
    case tooNew
    /// Signed with none of the secrets, or changed since.
    case signature
    /// True, and yet no event, or not what its type says.
    case body(String)
}

extension WebhookFault: CustomStringConvertible {
    public var description: String {
        switch self {
        case .missing(let field): "\(field.rawValue) is missing"
        case .repeated(let field): "\(field.rawValue) is there more than once"
        case .malformed(let field): "\(field.rawValue) is none"
        case .tooOld: "the webhook was sent too long ago"
        case .tooNew: "the webhook was sent later than it is by this clock"
        case .signature: "the webhook is signed with none of the secrets, or was changed since"
        case .body(let why): "the body is no event: \(why)"
        }
    }
}

/// The check that a receiver makes of every webhook before it reads a byte of the body.
public struct WebhookCheck: Sendable {
    /// As in the libraries of others.
    public static let tolerance = Duration.seconds(300)

    private let secrets: [WebhookSecret]
    private let tolerance: Duration

    /// - Parameters:
    ///   - secrets: the one of this website; two while it changes over.
    ///   - tolerance: so far sender's and receiver's clocks may be apart, either way, the time of the way included.
    public init(secrets: [WebhookSecret], tolerance: Duration = WebhookCheck.tolerance) {
        self.secrets = secrets
        self.tolerance = tolerance
    }

    /// Afterwards head and body are as they were sent. The same webhook may come again, under the same id and a new time: the
    /// receiver keeps the ids that it has acted on.
    ///
    /// - Parameter body: the bytes as they came, not read and written again.
    public func verify(_ head: WebhookHeaders, body: [UInt8], at now: Timestamp) throws(WebhookFault) {
        let age = now - head.sentAt
        guard age <= tolerance else { throw .tooOld }
        guard age >= .zero - tolerance else { throw .tooNew }
        let content = head.content(body)
        var matches = false
        // All of them, however many match: the time it takes tells nothing.
        for secret in secrets {
            let own = WebhookSignature(of: content, secret)
            for signature in head.signatures where Secret.matches(own.code, signature.code) { matches = true }
        }
        guard matches else { throw .signature }
    }

    /// The same of header fields as they came.
    @discardableResult
    public func verify(
        _ fields: some Sequence<(name: String, value: String)>, body: [UInt8], at now: Timestamp
    ) throws(WebhookFault) -> WebhookHeaders {
        let head = try WebhookHeaders(fields)
        try verify(head, body: body, at: now)
        return head
    }
}
