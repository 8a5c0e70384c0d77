/// The check that a receipt failed. In every case, do not let the person in.
public enum ReceiptFault: Error, Sendable, Equatable {
    /// The relay itself reports that the login did not succeed.
    case notSuccessful
    /// The relay itself reports another proof than a phone's signature.
    case notSigned(proof: String?)
    /// The answer has no device, receipt or context.
    case incomplete
    /// No key of that phone is pinned for this user.
    case unknownDevice
    /// The receipt is not a JWS with the algorithm ES256.
    case malformed(String)
    /// The receipt is signed by another key than the pinned one, or it was changed later.
    case signature
    /// The `typ` of the JWS is not `twoefay-decision+jwt`.
    case type
    /// Claims are missing or have the wrong type, or `v` is a version that this library does not
    /// know.
    case claims
    /// The receipt is for another website or from another relay.
    case audience
    /// The `kid` in the receipt names another phone than the answer does.
    case device
    /// The person denied the request or reported fraud.
    case decision(String)
    /// The receipt answers another request, or none.
    case request
    /// The request was already spent by an earlier answer.
    case requestUsed
    /// The number in the receipt is not the number that the website showed.
    case number
    /// The digest in the receipt does not match the context that the relay passed on.
    case contextDigest
    /// The context is too long, is not base64url, or is not an unambiguous JSON object.
    case context(String)
    /// The phone showed this field with another value than the website sent, or the website did not
    /// send it.
    case field(String)
    /// The receipt answers another challenge.
    case challenge
    /// The phone verified its owner by a weaker method than this website requires.
    case userVerification
    /// The phone verified its owner longer ago than this website accepts, or stated no age.
    case userVerificationAge
    /// The number has fewer digits than this website requires, or there was none.
    case digits
    /// The login request is older than this website accepts.
    case age
    /// The login used another factor than this website asked for, or a code is said to be of a factor
    /// that has no codes. Only `TwoefayRelay` checks this.
    case factor
    /// The assurance is lower than this website asked for, or higher than a code of this factor has.
    /// Only `TwoefayRelay` checks this.
    case assurance
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
        case .type: "the JWS is not a decision"
        case .claims: "the receipt lacks claims, or has an unknown version"
        case .audience: "the receipt is for another website, or from another relay"
        case .device: "the receipt is from another phone"
        case .decision(let decision): "the decision is \(decision), not approve"
        case .request: "the receipt answers another request"
        case .requestUsed: "the request was already answered"
        case .number: "the number differs from the one shown"
        case .contextDigest: "the phone did not show this context"
        case .context(let why): "the context: \(why)"
        case .field(let name): "the phone did not show \(name) as it was sent"
        case .challenge: "the receipt answers another challenge"
        case .userVerification: "the user verification is lower than this website requires"
        case .userVerificationAge: "the user verification is older than this website accepts, or has no age"
        case .digits: "the number has fewer digits than this website requires"
        case .age: "the login was requested too long ago"
        case .factor: "the login used a factor that was not asked for"
        case .assurance: "the assurance is not that of this login"
        }
    }
}
