import JSON
import World

/// The current state or the result of a challenge.
///
/// `login` is the only member that decides about access, and only `.success` is a success. Check
/// the receipt before you let the user in: `LoginEvidence(outcome)`, then `ReceiptCheck`.
public struct LoginOutcome: Sendable, Equatable {
    /// The state of a challenge, as `login` in the answer reports it.
    public enum Login: String, Sendable {
        case success, failure
        /// The challenge is not decided yet.
        case wait
        /// The relay has no result, because the user has no challenge. It occurs only for a call
        /// with the user's token in place of a challenge.
        case nothing = ""
    }

    /// A factor that the challenge tried.
    public struct Step: Sendable, Equatable {
        /// The factor that was tried.
        public let factor: Factor
        /// The state of the step: `queued`, `sent`, `seen`, `refused`, `undeliverable`, `answered`,
        /// `expired` or `skipped`.
        public let state: String
        /// The time at which the step got this state.
        public let at: Timestamp
        /// The reason for the state, as a text for people.
        public let reason: String?
        /// The attempts of a push that waits for another one; nil if there was one at most.
        public let tries: Int64?
    }

    /// The place of the phone in comparison with that of the login's address, as the relay judges
    /// it. Both can be forged, so it is a hint.
    public struct PhonePlace: Sendable, Equatable {
        /// `near`, `far`, or `unknown` if one of the places is not known.
        public let check: String
        /// The least distance in kilometres.
        public let distance: Int64?
    }

    /// The state of the challenge.
    public let login: Login
    /// The id of the challenge.
    public let challenge: String?
    /// The factor in use, or the one that decided the challenge.
    public let factor: Factor?
    /// The method by which the answer was authenticated.
    public let proof: Proof?
    /// The level of confidence in a success.
    public let assurance: Assurance?
    /// The reason of a failure.
    public let reason: Reason?
    /// The factors that the challenge has tried, as the relay lists them.
    public let steps: [Step]
    /// The place of the phone; nil unless the policy `phone-place` asks for it.
    public let phonePlace: PhonePlace?
    /// The method by which the phone verified its user, as it signed it; nil unless the policy is
    /// `max-uv-age`.
    public let userVerification: UserVerification?
    /// The seconds between that verification and the signature.
    public let userVerificationAge: Int64?
    /// The attestation and posture of the phone that approved; nil if the policy asks for neither.
    public let attestation: PhoneAttestation?
    /// The whole answer, as the relay sent it.
    public let json: JSONObject

    /// Reads an answer of `/auth` or `/backup`, or the `data` of a `login.decided` webhook.
    public init(_ json: JSONObject) throws(CallFault) {
        guard let login = Login(rawValue: try json.text("login")) else { throw .odd("login is unknown") }
        self.login = login
        self.json = json
        challenge = json["challenge"]?.string
        factor = json.word(ifAny: "factor")
        proof = json.word(ifAny: "proof")
        assurance = json.word(ifAny: "assurance")
        reason = json.word(ifAny: "reason")
        phonePlace = json["phone_place"]?.object.flatMap { place in
            place["check"]?.string.map { PhonePlace(check: $0, distance: place["distance"]?.integer) }
        }
        userVerification = json["uv"]?.string.flatMap { UserVerification(rawValue: $0) }
        userVerificationAge = json["uv_age"]?.integer
        attestation = try PhoneAttestation(json["attestation"])
        var steps: [Step] = []
        for step in json["steps"] == nil ? [] : try json.objects("steps") {
            steps.append(
                Step(
                    factor: try step.word("factor"), state: try step.text("state"), at: try step.timestamp("at"),
                    reason: step["reason"]?.string, tries: step["tries"]?.integer))
        }
        self.steps = steps
    }

    /// Whether the login succeeded.
    public var isSuccess: Bool { login == .success }
    /// Whether the challenge has ended, with success or failure.
    public var isDecided: Bool { login == .success || login == .failure }
}

extension LoginEvidence {
    /// Takes the evidence that `ReceiptCheck` must accept before the website lets the user in.
    public init(_ outcome: LoginOutcome) throws(ReceiptFault) { try self.init(outcome.json) }
}
