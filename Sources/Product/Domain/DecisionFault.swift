/// Why a phone's decision was not taken. Nothing changes then and nobody's failures are counted: log, metrics and audit
/// name it by these words.
public enum DecisionFault: String, Error, Sendable, CaseIterable {
    /// Longer than any decision is.
    case size
    /// Not a compact JWS over exactly the claims of a decision.
    case malformed
    case algorithm
    /// A JWS that is meant for something else.
    case type
    /// Its header names another phone than the one that sent it.
    case key
    case signature
    /// Meant for another website or another relay.
    case audience
    case challenge, nonce, request
    /// Not what the person was shown.
    case context
    /// An approval at /failure, or the reverse.
    case decision
    /// No number though one is asked, or one though none is.
    case number
    /// The phone did not make sure of its owner as the policy demands.
    case verification
    /// Not the form that the challenge's policy takes.
    case policy
    /// There is no such challenge for this phone.
    case unknown
    /// The time of the challenge is over.
    case late
    /// The challenge has another end.
    case decided
    /// Too soon after a wrong number.
    case limited
    /// The phone was suspended, or its user locked, while it answered.
    case revoked

    /// For whoever writes the phone's program. It says nothing that the phone was not told before.
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
