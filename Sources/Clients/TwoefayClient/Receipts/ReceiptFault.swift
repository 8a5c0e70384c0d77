/// Which check a receipt failed. Each means the same to the person at the door: do not let them in.
public enum ReceiptFault: Error, Sendable, Equatable {
    /// The relay itself says so: nothing was signed, or nothing was approved.
    case notSuccessful
    case notSigned(proof: String?)
    case incomplete
    /// No key of that phone was pinned for this user.
    case unknownDevice
    /// Not a JWS, or not in the algorithm that belongs here.
    case malformed(String)
    /// Signed by another key than the pinned one, or changed since.
    case signature
    case type
    /// Claims are missing, are of the wrong kind, or have a version that is not known here.
    case claims
    /// For another website, or from another relay.
    case audience
    /// Signed for another phone than it is said to come from.
    case device
    /// The person denied, or reported a fraud.
    case decision(String)
    /// Not the request that was made.
    case request
    case requestUsed
    case number
    /// The phone showed something else than the relay says it showed.
    case contextDigest
    /// What the phone showed cannot be read in one way only.
    case context(String)
    /// The phone showed this field otherwise than it was sent, or showed it though it was not sent.
    case field(String)
    case challenge
    /// The phone made less sure of its owner than this website wants.
    case userVerification
    /// No number was asked, or a shorter one than this website wants.
    case digits
    /// The login was asked for too long ago.
    case age
}

extension ReceiptFault: CustomStringConvertible {
    public var description: String {
        switch self {
        case .notSuccessful: "the relay reports no success"
        case .notSigned(let proof): "the relay claims no signature; its proof is \(proof ?? "missing")"
        case .incomplete: "the answer lacks receipt, context or device"
        case .unknownDevice: "no key of that phone is pinned for this user"
        case .malformed(let why): why
        case .signature: "not signed by the pinned key of that phone"
        case .type: "the JWS is no decision"
        case .claims: "the receipt lacks claims, or has a version that is not known here"
        case .audience: "the receipt is for another website, or from another relay"
        case .device: "the receipt is of another phone"
        case .decision(let decision): "the person did not approve but said \(decision)"
        case .request: "the receipt answers another request"
        case .requestUsed: "the request was answered before"
        case .number: "the number is not the one that was shown"
        case .contextDigest: "the phone did not show this context"
        case .context(let why): "the context: \(why)"
        case .field(let name): "the phone did not show \(name) as it was sent"
        case .challenge: "the receipt answers another challenge"
        case .userVerification: "the phone did not make sure enough of its owner"
        case .digits: "the number has fewer digits than this website wants"
        case .age: "the login was asked for too long ago"
        }
    }
}
