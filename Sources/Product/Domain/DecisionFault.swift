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
        case .malformed: "is not a compact JWS over the claims of a decision, each once and no others"
        case .algorithm: "must have the alg ES256"
        case .type: "must have the typ \(SignedDecision.type)"
        case .key: "must have this phone's id as its kid"
        case .signature: "is not signed by this phone's key: r and s, 64 bytes, over the first two parts"
        case .audience: "has an aud other than this relay's origin, # and the website's name"
        case .challenge: "is about another challenge"
        case .nonce: "does not have this challenge's nonce"
        case .request: "does not have the request of this challenge's context, or has one where the context has none"
        case .context: "does not have the SHA-256 of this challenge's context bytes"
        case .decision: "says approve, which goes to /success, or deny or fraud, which go to /failure"
        case .number: "must have a number where an approval is asked for one, and none elsewhere"
        case .verification: "says that the phone did not make sure of its owner as the website demands"
        case .policy: "is not the form of answer that the policy of this challenge takes"
        case .unknown: "is about a challenge that is not this phone's"
        case .late: "came after the challenge had expired"
        case .decided: "came after the challenge had its end"
        case .limited: "came too soon after a wrong number"
        case .revoked: "came from a phone that may not answer any more"
        }
    }
}
