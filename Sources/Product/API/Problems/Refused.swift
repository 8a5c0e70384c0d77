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
            self.init(.approvalRequired, "Once this challenge has succeeded, repeat the call with it as approval")
            members.set("challenge", .string(challenge.text))
            if let number { members.set("number", .string(number)) }
        case .codesLocked:
            self.init(
                .codesLocked,
                "Too many codes were wrong, so none is taken until the user approves of that on a phone "
                    + "(POST /user/…/unlock) or an operator lifts it (twoefay user unlock)")
        case .notFound: self = .notFound
        case .invalid(let faults): self = .invalid(faults)
        case .conflict(let faults): self.init(.conflict, Self.list(faults), faults: faults)
        case .shownOnce: self = .shownOnce
        case .alreadyDecided(let result):
            self.init(.alreadyDecided, "The challenge ended before with \(result), and that does not change")
            members.set("login", .string(result))
        case .limited(let pause):
            self.init(.limited, "Try again later", retryAfter: max(1, (pause.wholeMilliseconds + 999) / 1000))
        case .unavailable: self = .unavailable
        case .broken: self.init(.internal, "The relay's log says more, under this answer's request-id")
        }
    }

    static func invalid(_ faults: [FieldFault]) -> Problem {
        Problem(.invalid, list(faults), faults: faults)
    }

    static let unauthenticated = Problem(
        .unauthenticated, "What was presented does not prove who is calling, or its name is not registered")

    /// The same problem for paths that do not exist and for everything that belongs to another
    /// caller.
    static let notFound = Problem(.notFound, "There is no such thing, or it is not yours")

    static let shownOnce = Problem(
        .shownOnce, "This request succeeded before; what it answered is not shown a second time")

    static let tooLarge = Problem(.tooLarge, "A body may have \(Request.bodyLimit) bytes")

    static let unavailable = Problem(
        .unavailable, "The relay cannot do this at the moment; nothing is known to have changed", retryAfter: 2)

    private static func list(_ faults: [FieldFault]) -> String {
        faults.prefix(8).map { "\($0.parameter) \($0.message)" }.joined(separator: "; ")
    }
}
