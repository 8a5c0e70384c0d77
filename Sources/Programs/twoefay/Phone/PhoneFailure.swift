import Daemon
import Phone

extension Failure {
    /// Creates the failure for a request to the relay that failed.
    ///
    /// - Parameter unauthenticated: the advice if the relay does not accept the phone's identity.
    init(_ failure: CallFailure, unauthenticated: String = Failure.notKnown) {
        let (code, next): (ExitCode, String) =
            switch failure {
            case .notSent: (.unavailable, "Nothing was done. Is the relay reachable from here?")
            case .ambiguous:
                (.unavailable, "Whether the relay did it is not known. Try again: the same is not done twice.")
            case .unable: (.failed, "'twoefay phone list' shows the phones there are.")
            case .refused(let refusal):
                switch refusal.status {
                case 401: (.failed, unauthenticated)
                case 404: (.notFound, "It may be over: 'twoefay phone watch' shows what is asked now.")
                case 403: (.failed, "The website's policy does not let it be done like this.")
                case 409:
                    (
                        .conflict,
                        refusal.code == "already_decided"
                            ? "What was decided does not change." : "Something has to change there first."
                    )
                case 429, 503:
                    (
                        .unavailable,
                        refusal.retryAfter.map { "Try again in \($0) s." } ?? "Try again in a while."
                    )
                case 500...: (.unavailable, "The relay's own log says more.")
                default: (.failed, "Is this 'twoefay' of the relay's version?")
                }
            }
        self.init(code, failure.description, next: next)
    }

    static let notKnown =
        "The phone may be suspended or revoked, by its website, by the operator or by its revocation code. "
        + "If it is gone for good: 'twoefay phone unbind --forget', and bind it anew."
}
