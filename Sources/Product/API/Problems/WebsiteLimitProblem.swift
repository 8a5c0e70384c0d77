import Domain
import JSON
import World

extension Problem {
    /// The problem of a website that has used up what its policy allows. `limit` names the policy,
    /// so that the website can tell it from the limits of a user.
    static func websiteLimited(_ limit: WebsiteLimit, retryAfter pause: Duration) -> Problem {
        var problem = Problem(
            .limited,
            LocalizedText(
                "The website has used up what its policy \(limit.policy) allows; try again later, or ask the operator "
                    + "of the relay for more",
                de:
                    "Die Website hat aufgebraucht, was ihre Richtlinie \(limit.policy) erlaubt. Versuchen Sie es später "
                    + "erneut, oder bitten Sie den Betreiber des Relays um mehr"),
            retryAfter: max(1, (pause.wholeMilliseconds + 999) / 1000))
        problem.members.set("limit", .string(limit.policy))
        return problem
    }
}
