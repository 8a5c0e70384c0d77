import Daemon
import Phone

extension Failure {
    /// Creates the failure for a request to the relay that failed.
    ///
    /// - Parameter unauthenticated: the advice if the relay does not accept the phone's identity.
    init(_ failure: CallFailure, unauthenticated: String = Failure.notKnown) {
        let (code, next): (ExitCode, String) =
            switch failure {
            case .notSent: (.unavailable, "Nothing was changed. Check that the relay can be reached from here.")
            case .ambiguous:
                (.unavailable, "It is unknown whether the relay received it. Try again: it takes effect only once.")
            case .unable: (.failed, "'twoefay phone list' shows the phones.")
            case .unbound: (.failed, "Delete its key: twoefay phone unbind. Then bind it again, if it is still yours.")
            case .refused(let refusal):
                switch refusal.status {
                case 401: (.failed, unauthenticated)
                case 404: (.notFound, "It may have ended: 'twoefay phone watch' shows the pending challenges.")
                case 403:
                    (
                        .failed,
                        refusal.code == "not_attested"
                            ? "The code stays valid. Run the command again with --attest and --attest-root, for a relay "
                                + "that trusts that root."
                            : refusal.code == "posture_unmet"
                                ? "Nothing was changed. Report the state of the phone with --posture, or bind it again."
                                : Self.pinAdvice[refusal.code ?? ""] ?? "The policy of the website does not allow this."
                    )
                case 409:
                    (
                        .conflict,
                        refusal.code == "already_decided"
                            ? "A decision cannot be changed." : "Resolve the conflict first, then try again."
                    )
                case 429, 503:
                    (
                        .unavailable,
                        refusal.retryAfter.map { "Try again in \($0) s." }
                            ?? "The relay has too much to do, or waits for its store: try again in a minute."
                    )
                case 500...: (.unavailable, "The relay's log says more.")
                default: (.failed, "Check that 'twoefay' and the relay have the same version.")
                }
            }
        self.init(code, failure.description, next: next)
    }

    /// Whether the relay has counted a wrong PIN, and the challenge is still open.
    static func isWrongPIN(_ failure: CallFailure) -> Bool {
        guard case .refused(let refusal) = failure else { return false }
        return refusal.code == "pin_wrong"
    }

    private static let pinAdvice = [
        "pin_required": "Set a PIN: twoefay phone pin set. If there is one, give it with --pin.",
        "pin_wrong": "Try again. 'twoefay phone pin show' shows how often.",
        "pin_locked": "Reset the PIN with the PUK: twoefay phone pin reset. To deny: twoefay phone deny",
        "puk_wrong": "Try again. 'twoefay phone pin show' shows how often.",
        "puk_locked": "Ask the help desk for an unlock code: twoefay phone pin unlock. Or bind the phone again.",
        "unlock_wrong": "Check the code with the help desk, and try again.",
        "unlock_void": "Ask the help desk for another code ('twoefay device unlock-code').",
    ]

    static let notKnown =
        "The phone may be suspended or revoked, by its website, an operator or its revocation code; or its user may "
        + "not log in now, and the website knows why. "
        + "If it is revoked, run 'twoefay phone unbind --forget', and bind it again."
}
