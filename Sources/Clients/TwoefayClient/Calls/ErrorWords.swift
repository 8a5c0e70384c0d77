/// An error of this library. After any of them, let nobody in.
///
/// Other errors come from the website's store.
public protocol TwoefayError: Error, Sendable, CustomStringConvertible {
    /// The name of the error, the same in the clients of all languages (clients/README.md): such as
    /// `unreachable`, `odd_answer`, `receipt`, or the code of a refusal.
    var word: String { get }
}

extension CallFault: TwoefayError {
    /// `unreachable`, `odd_answer`, the code of a refusal, or `refused` for a code that this version
    /// does not know. `cancelled` and `unusable` say that the website itself ended the call, or that
    /// an argument or a setting is wrong.
    public var word: String {
        switch self {
        case .refused(let problem):
            if problem.code == .foreign {
                "odd_answer"
            } else {
                Problem.statuses[problem.code] == nil ? "refused" : problem.code.rawValue
            }
        case .unreached, .unanswered: "unreachable"
        case .odd: "odd_answer"
        case .cancelled: "cancelled"
        case .unable: "unusable"
        }
    }
}

extension ReceiptFault: TwoefayError {
    /// `receipt`: the relay reports a success that it does not prove. It may be dishonest.
    public var word: String { "receipt" }

    /// The check that failed, as a stable word.
    public var reason: String {
        switch self {
        case .notSuccessful, .notSigned: "not_signed"
        case .incomplete: "incomplete"
        case .unknownDevice: "unknown_device"
        case .malformed: "malformed"
        case .signature: "signature"
        case .type: "type"
        case .claims: "claims"
        case .audience: "audience"
        case .device: "device"
        case .decision: "decision"
        case .request: "request"
        case .requestUsed: "request_used"
        case .number: "number"
        case .contextDigest: "context_digest"
        case .context: "context"
        case .field: "field"
        case .challenge: "challenge"
        case .userVerification: "user_verification"
        case .userVerificationAge: "user_verification_age"
        case .digits: "digits"
        case .age: "age"
        case .factor: "factor"
        case .assurance: "assurance"
        }
    }
}

extension BindingFault: TwoefayError {
    /// `binding`: the relay reports a key that no phone has proved.
    public var word: String { "binding" }

    /// The check that failed, as a stable word.
    public var reason: String {
        switch self {
        case .incomplete: "incomplete"
        case .malformed: "malformed"
        case .code: "code"
        case .type: "type"
        case .claims: "claims"
        case .audience: "audience"
        case .token: "token"
        case .phone: "phone"
        case .app: "app"
        case .key: "key"
        }
    }
}
