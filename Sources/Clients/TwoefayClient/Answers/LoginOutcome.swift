import JSON
import World

/// How a challenge stands, or how it ended.
public struct LoginOutcome: Sendable, Equatable {
    public enum Login: String, Sendable {
        case success, failure
        /// Not decided yet.
        case wait
        /// There is nothing to tell.
        case nothing = ""
    }

    /// One way that was tried.
    public struct Step: Sendable, Equatable {
        public let factor: Factor
        /// `queued`, `sent`, `seen`, `refused`, `undeliverable`, `answered`, `expired`, `skipped`.
        public let state: String
        public let at: Timestamp
        /// For people.
        public let reason: String?
    }

    public let login: Login
    public let challenge: String?
    public let factor: Factor?
    public let proof: Proof?
    public let assurance: Assurance?
    public let reason: Reason?
    public let steps: [Step]
    /// The whole of it.
    public let json: JSONObject

    public init(_ json: JSONObject) throws(CallFault) {
        guard let login = Login(rawValue: try json.text("login")) else { throw .odd("login is none") }
        self.login = login
        self.json = json
        challenge = json["challenge"]?.string
        factor = json.word(ifAny: "factor")
        proof = json.word(ifAny: "proof")
        assurance = json.word(ifAny: "assurance")
        reason = json.word(ifAny: "reason")
        var steps: [Step] = []
        for step in json["steps"] == nil ? [] : try json.objects("steps") {
            steps.append(
                Step(
                    factor: try step.word("factor"), state: try step.text("state"), at: try step.timestamp("at"),
                    reason: step["reason"]?.string))
        }
        self.steps = steps
    }

    public var isSuccess: Bool { login == .success }
    public var isDecided: Bool { login == .success || login == .failure }
}

extension LoginEvidence {
    /// What is to be checked of an outcome before anybody is let in.
    public init(_ outcome: LoginOutcome) throws(ReceiptFault) { try self.init(outcome.json) }
}
