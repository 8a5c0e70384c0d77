import Attestation
import Domain

/// The reason why a verb refused a request. The API turns each into a problem document.
public enum Refusal: Error, Sendable, Equatable {
    case unauthenticated
    case forbidden(LocalizedText)
    /// The user must approve the change first, with this challenge. When the challenge has
    /// succeeded, the website repeats the request with its id. `number` is what the person must
    /// enter on the phone.
    case approvalRequired(ChallengeID, number: String?)
    case notFound
    case invalid([FieldFault])
    case conflict([FieldFault])
    /// The user's codes are locked after too many wrong ones: none is accepted until the lock is
    /// lifted.
    case codesLocked
    /// The website binds only phones with a faultless attestation.
    case notAttested(AttestationFault)
    /// The phone does not meet the demands of the website. Nothing has changed.
    case postureUnmet([PhoneDemands.Demand])
    /// The approval, or the change of the PIN, needs the PIN or PUK, and it was missing, wrong or
    /// locked.
    case pin(PINRefusal)
    /// A second answer to a challenge that has ended.
    case alreadyDecided(result: String)
    /// The request was carried out before, and its answer held a secret, which is not shown a
    /// second time.
    case shownOnce
    case limited(retryAfter: Duration)
    /// The website has used up what its policy allows.
    case websiteLimited(WebsiteLimit, retryAfter: Duration)
    case unavailable
    /// Something outside of the relay has not decided yet.
    case pending(retryAfter: Duration)
    /// A bug in the relay or a forged row; the log has the details.
    case broken
}

extension Refusal {
    /// Returns the refusal for something that an operator has stopped, so that only an operator can
    /// undo it.
    ///
    /// - Parameter command: the command of `twoefay` that undoes it.
    static func stopped(_ command: String) -> Refusal {
        .forbidden(
            LocalizedText(
                "An operator has blocked this, and only an operator can lift the block: twoefay \(command)",
                de: "Der Betreiber hat das gesperrt, und nur er kann die Sperre aufheben: twoefay \(command)"))
    }
}

extension Refusal {
    /// The refusal to unlock a user who left the directory, or to give the user a factor.
    static let disabled = Refusal.forbidden(
        LocalizedText(
            "The user has left the directory that the relay syncs with. A sync enables the user on return, or an "
                + "operator does: twoefay user enable",
            de: "Der Benutzer steht nicht mehr im Verzeichnis, mit dem das Relay abgleicht. Steht er dort wieder, gibt "
                + "ihn der nächste Abgleich frei; sonst kann das der Betreiber tun: twoefay user enable"))
}

extension Refusal {
    /// The refusal of a code or an approval of a user whose expiry has passed.
    static let userExpired = Refusal.forbidden(
        LocalizedText(
            "The user has expired. The website can set another expires_at with PATCH /user/…, or an operator does: "
                + "twoefay user expire",
            de: "Der Benutzer ist abgelaufen. Die Website kann mit PATCH /user/… ein anderes expires_at setzen, oder "
                + "der Betreiber tut das: twoefay user expire"))
}

extension Refusal {
    /// The refusal to remove or prolong an expiry that an operator has set.
    static let expiryOfOperator = Refusal.forbidden(
        LocalizedText(
            "An operator has set expires_at. The website can only set an earlier time; an operator can set any: "
                + "twoefay user expire",
            de:
                "Der Betreiber hat expires_at gesetzt. Die Website kann nur eine frühere Zeit setzen; der Betreiber kann "
                + "jede setzen: twoefay user expire"))
}

/// A fault in one parameter of a request.
public struct FieldFault: Sendable, Equatable {
    public enum Code: String, Sendable {
        case missing, unknown, type, format, length, mismatch, taken, state
    }

    public let parameter: String
    public let code: Code
    /// The message, which begins with a verb: the parameter's name precedes it in `detail`.
    public let message: LocalizedText

    public init(_ parameter: String, _ code: Code, _ message: LocalizedText) {
        self.parameter = parameter
        self.code = code
        self.message = message
    }
}

extension FieldFault {
    /// A required parameter that was not given.
    public static func missing(_ parameter: String) -> FieldFault {
        FieldFault(parameter, .missing, LocalizedText("must be given", de: "fehlt"))
    }
}
