import Domain
import HTTP
import JSON
import Relay
import World

extension Problem {
    /// The problem that is returned when a verb refuses.
    init(_ refusal: Refusal) {
        switch refusal {
        case .unauthenticated: self = .unauthenticated
        case .forbidden(let why): self.init(.forbidden, why)
        case .approvalRequired(let challenge, let number):
            self.init(
                .approvalRequired, "When this challenge has succeeded, repeat the request with its id in approval")
            members.set("challenge", .string(challenge.text))
            if let number { members.set("number", .string(number)) }
        case .codesLocked:
            self.init(
                .codesLocked,
                "Too many codes were wrong. The relay accepts no code until the user approves that on a phone "
                    + "(POST /user/…/unlock) or an operator unlocks the codes (twoefay user unlock)")
        case .notFound: self = .notFound
        case .invalid(let faults): self = .invalid(faults)
        case .conflict(let faults): self.init(.conflict, Self.list(faults), faults: faults)
        case .shownOnce: self = .shownOnce
        case .alreadyDecided(let result):
            self.init(.alreadyDecided, "The challenge has already ended with \(result); its result does not change")
            members.set("login", .string(result))
        case .limited(let pause):
            self.init(.limited, "Try again later", retryAfter: max(1, (pause.wholeMilliseconds + 999) / 1000))
        case .unavailable: self = .unavailable
        case .broken: self.init(.internal, "The relay's log has details under the request-id of this answer")
        }
    }

    static func invalid(_ faults: [FieldFault]) -> Problem {
        Problem(.invalid, list(faults), faults: faults)
    }

    static let unauthenticated = Problem(
        .unauthenticated, "The certificate or DPoP proof does not identify a registered caller")

    /// The same problem for paths that do not exist and for everything that belongs to another
    /// caller.
    static let notFound = Problem(.notFound, "The path or object does not exist, or belongs to another caller")

    static let shownOnce = Problem(
        .shownOnce, "This request has already succeeded; its answer held a secret and is not shown again")

    static let tooLarge = Problem(.tooLarge, "A body may have at most \(Request.bodyLimit) bytes")

    static let unavailable = Problem(
        .unavailable, "The relay cannot complete the request now, and knows of no change; try again later",
        retryAfter: 2)

    private static func list(_ faults: [FieldFault]) -> String {
        faults.prefix(8).map { "\($0.parameter) \($0.message)" }.joined(separator: "; ")
    }
}
