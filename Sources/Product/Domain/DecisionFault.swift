/// The reason why a phone's decision was refused. A refused decision changes nothing and counts as
/// no failure. Log, metrics and audit use the raw values.
public enum DecisionFault: String, Error, Sendable, CaseIterable {
    /// The text is longer than any valid decision.
    case size
    /// The text is not a compact JWS over exactly the claims of a decision.
    case malformed
    case algorithm
    /// The JWS is of another type.
    case type
    /// The header names another phone than the sender.
    case key
    case signature
    /// The audience is another website or relay.
    case audience
    case challenge, nonce, request
    /// The context is not the one that was shown.
    case context
    /// An approval arrived at /failure, or a denial at /success.
    case decision
    /// A required number is missing, or a number is present although none is required.
    case number
    /// The user verification is below the policy's minimum.
    case verification
    /// The challenge's policy requires another form of answer.
    case policy
    /// This phone has no challenge with that id.
    case unknown
    /// The challenge has expired.
    case late
    /// The challenge has already ended otherwise.
    case decided
    /// The answer came too soon after a wrong number.
    case limited
    /// The phone was suspended, or its user locked, while the answer was processed.
    case revoked

    /// The message for the developer of the phone's app. It contains nothing that the phone does
    /// not already know.
    public var message: String {
        switch self {
        case .size: "has more than \(SignedDecision.maxBytes) bytes"
        case .malformed: "is not a compact JWS with exactly the claims of a decision, each once"
        case .algorithm: "must have the alg ES256"
        case .type: "must have the typ \(SignedDecision.type)"
        case .key: "must have this phone's id as its kid"
        case .signature: "must be signed by this phone's key: r and s, 64 bytes, over the first two parts"
        case .audience: "must have an aud of this relay's origin, # and the website's name"
        case .challenge: "is for another challenge"
        case .nonce: "must have this challenge's nonce"
        case .request: "must have the request of this challenge's context, or none if the context has none"
        case .context: "must have the SHA-256 of this challenge's context bytes"
        case .decision: "was sent to the wrong route: approve goes to /success, deny and fraud go to /failure"
        case .number: "must have a number if it approves a challenge with a number, and otherwise none"
        case .verification: "has a uv below the user verification that the website requires"
        case .policy: "is not in the form that the policy of this challenge requires"
        case .unknown: "is for a challenge that this phone does not have"
        case .late: "came after the challenge had expired"
        case .decided: "came after the challenge had ended"
        case .limited: "came too soon after a wrong number"
        case .revoked: "came from a phone that may no longer answer"
        }
    }
}
