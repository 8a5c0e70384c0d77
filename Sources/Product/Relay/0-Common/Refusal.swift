import Domain

/// Why a verb did not do what it was asked; the API turns each into a problem document.
public enum Refusal: Error, Sendable, Equatable {
    case unauthenticated
    case forbidden(String)
    /// A further factor needs this challenge to succeed first; then the call is repeated with it. The number is what the
    /// person has to carry to the phone.
    case approvalRequired(ChallengeID, number: String?)
    case notFound
    case invalid([FieldFault])
    case conflict([FieldFault])
    /// Too many codes of the user were wrong: none is taken until that is lifted.
    case codesLocked
    /// A second answer to a challenge that has its end.
    case alreadyDecided(result: String)
    /// The request was carried out before, and what it answered is not shown a second time.
    case shownOnce
    case limited(retryAfter: Duration)
    case unavailable
    /// A bug of ours; the log has the details.
    case broken
}

extension Refusal {
    /// What an operator has taken out of use is theirs to bring back.
    ///
    /// - Parameter command: of `twoefay`, with which they do.
    static func stopped(_ command: String) -> Refusal {
        .forbidden("An operator of the relay has stopped this, and only an operator undoes that: twoefay \(command)")
    }
}

/// What is wrong with one parameter of a request.
public struct FieldFault: Sendable, Equatable {
    public enum Code: String, Sendable {
        case missing, unknown, type, format, length, mismatch, taken, state
    }

    public let parameter: String
    public let code: Code
    public let message: String

    public init(_ parameter: String, _ code: Code, _ message: String) {
        self.parameter = parameter
        self.code = code
        self.message = message
    }
}
