import Domain
import JSON
import Relay

extension Shape {
    static let dependencies = map(of: words(["ok", "missing"]), named: "store")

    /// The problem document. Which of the further members there are depends on the code.
    static let problem = problemMembers.named("Problem")

    private static let problemMembers = object([
        "type": text("urn:twoefay:problem:invalid"), "title": text("Invalid parameters").about("For people"),
        "status": integer(400), "code": word("ProblemCode", Problem.Code.self).about("For programs"),
        "detail": text("username must be given").about("For people: what to do"),
        "errors?": list(
            of: object([
                "parameter": text("username"), "code": words(faultCodes.map(\.rawValue)),
                "message_key": text("username.missing").about("A key for translations"),
                "message": text("must be given").about("For people"),
            ]).named("ParameterFault")
        ).about("All faults of the parameters"),
        "challenge?": id.about("With approval_required: the challenge of the approval"),
        "number?": number.about("With approval_required: the number to show"),
        "fault?": attestationFault.about("With not_attested"), "unmet?": list(of: demand).about("With posture_unmet"),
        "tries_left?": integer(2).about("With pin_wrong, puk_wrong and unlock_wrong"),
        "login?": result.showing("failure").about("With already_decided: the result"),
        "limit?": text("limit-logins-day").about("With limited: the policy whose limit is reached"),
        "dependencies?": dependencies.about("With unavailable, at /ready"),
    ])

    private static let faultCodes: [FieldFault.Code] = [
        .missing, .unknown, .type, .format, .length, .mismatch, .taken, .state,
    ]

    /// An example of a problem with this code.
    static func example(of code: Problem.Code, _ text: String?) -> JSONValue {
        let title = code.title.english
        var example: JSONObject = [
            "type": .string("urn:twoefay:problem:\(code.rawValue)"), "title": .string(title),
            "status": .integer(Int64(code.status)), "code": .string(code.rawValue), "detail": .string(text ?? title),
        ]
        for name in code.members { example.set(name, problemMembers.example.object?[name]) }
        return .object(example)
    }
}

extension Problem.Code {
    /// The further members of the problem document.
    fileprivate var members: [String] {
        switch self {
        case .invalid: ["errors"]
        case .approvalRequired: ["challenge", "number"]
        case .notAttested: ["fault"]
        case .postureUnmet: ["unmet"]
        case .pinWrong, .pukWrong, .unlockWrong: ["tries_left"]
        case .alreadyDecided: ["login"]
        default: []
        }
    }
}
