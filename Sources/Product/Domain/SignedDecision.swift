import Bytes
import Crypto
import JSON

/// A user's decision about a challenge, signed by the phone: a `twoefay-decision+jwt`.
///
/// An approval must prove one thing only: this phone's key approved this challenge, as shown, for
/// this website at this relay. The initializer therefore checks every claim against the challenge:
/// audience, challenge id, nonce, the website's own nonce, and the hash of the context bytes.
///
/// Invariant: a value exists only if the signature is valid and all claims match. Any difference is
/// a `DecisionFault`; the caller records it and changes nothing. Unknown claims and header fields
/// are refused, since they could change the meaning of the others. Strings are compared by their
/// bytes, since Swift treats canonically equivalent strings as equal.
///
/// The value is pure and judged without a clock. Its caller checks whether the challenge is still
/// open, whether the number is right, and whether the phone may answer.
///
/// Tests: `DecisionTests` and `RefusedDecisionTests`; the latter produces every fault with every
/// store.
public struct SignedDecision: Sendable, Equatable {
    public static let type = "twoefay-decision+jwt"
    /// The maximum size in bytes, several times that of the longest valid decision.
    public static let maxBytes = 8192

    public let decision: Decision
    /// The number that the user entered. A denial needs none, so that the user can deny without
    /// looking it up.
    public let number: String?
    public let uv: UserVerification
    /// The seconds since the phone verified its owner; nil if the phone does not say.
    public let uvAge: Int?
    /// The coarse place of the phone; nil if the phone did not report one.
    public let place: CoarsePlace?
    /// The phone's report about itself; nil if it made none.
    public let posture: ReportedPosture?
    /// The time by the phone's clock in seconds; stored for the record and never checked.
    public let issuedAt: Int64

    /// The challenge and the phone that a decision must match.
    public struct Subject: Sendable {
        public let audience: String
        public let device: DeviceID
        public let key: P256PublicKey
        public let challenge: ChallengeID
        public let nonce: [UInt8]
        /// The exact context bytes that were shown.
        public let context: [UInt8]
        public let asksNumber: Bool
        /// Whether the decision arrived at /success rather than /failure.
        public let approves: Bool

        public init(
            audience: String, device: DeviceID, key: P256PublicKey, challenge: ChallengeID, nonce: [UInt8],
            context: [UInt8], asksNumber: Bool, approves: Bool
        ) {
            self.audience = audience
            self.device = device
            self.key = key
            self.challenge = challenge
            self.nonce = nonce
            self.context = context
            self.asksNumber = asksNumber
            self.approves = approves
        }
    }

    /// Returns the audience of a phone's statements: one website at one relay.
    public static func audience(origin: String, website: String) -> String { "\(origin)#\(website)" }

    /// Reads a decision and checks that the phone signed it and that every claim matches the
    /// challenge.
    public init(_ compact: String, about subject: Subject) throws(DecisionFault) {
        let claims = try Self.claims(compact, by: subject)
        guard claims["v"] == 1 else { throw .malformed }
        guard Self.same(claims["aud"], subject.audience) else { throw .audience }
        guard Self.same(claims["challenge"], subject.challenge.text) else { throw .challenge }
        let nonce = claims["nonce"]?.string ?? ""
        guard Secret.matches(Array(nonce.utf8), Array(Base64URL.encode(subject.nonce).utf8)) else { throw .nonce }
        switch Context.request(in: subject.context) {
        case let request?: guard Self.same(claims["request"], request) else { throw .request }
        case nil: guard claims["request"] == nil else { throw .request }
        }
        let digest = Base64URL.encode(SHA256.hash(subject.context))
        guard Self.same(claims["context"], digest) else { throw .context }
        guard let decision = claims["decision"]?.string.flatMap({ Decision(rawValue: $0) }),
            let uv = claims["uv"]?.string.flatMap({ UserVerification(rawValue: $0) }),
            let issuedAt = claims["iat"]?.integer
        else { throw .malformed }
        guard (decision == .approve) == subject.approves else { throw .decision }
        if let number = claims["number"], number.string == nil { throw .malformed }
        let number = claims["number"]?.string
        if decision == .approve, (number != nil) != subject.asksNumber { throw .number }
        if let place = claims["place"] {
            guard let place = place.string.flatMap({ CoarsePlace($0) }) else { throw .malformed }
            self.place = place
        } else {
            place = nil
        }
        // A denial counts whatever the phone says about itself.
        if decision == .approve, let age = claims["uv_age"] {
            guard let age = age.integer.flatMap({ Int32(exactly: $0) }), age >= 0 else { throw .malformed }
            uvAge = Int(age)
        } else {
            uvAge = nil
        }
        if decision == .approve, let posture = claims["posture"] {
            guard let posture = ReportedPosture(json: posture) else { throw .malformed }
            self.posture = posture
        } else {
            posture = nil
        }
        self.decision = decision
        self.number = number
        self.uv = uv
        self.issuedAt = issuedAt
    }

    /// Returns the claims after checking that the signature is the phone's.
    private static func claims(_ compact: String, by subject: Subject) throws(DecisionFault) -> JSONObject {
        let object: JWSObject
        do {
            object = try JWS.parse(compact, maxBytes: maxBytes)
        } catch {
            switch error {
            case .tooLong: throw .size
            case .malformed, .header: throw .malformed
            case .algorithm: throw .algorithm
            case .signatureLength: throw .signature
            }
        }
        guard same(object.header["typ"], type) else { throw .type }
        // Exactly `alg`, `typ` and `kid`; the parser guarantees `alg` and refuses duplicate names.
        guard object.header.count == 3, object.header["kid"] != nil else { throw .malformed }
        guard same(object.header["kid"], subject.device.text) else { throw .key }
        guard object.verify(subject.key) else { throw .signature }
        guard let claims = (try? JSONReader.read(object.payload))?.object,
            required.allSatisfy({ claims[$0] != nil }),
            claims.count == required.count + optional.count(where: { claims[$0] != nil })
        else { throw .malformed }
        return claims
    }

    /// The permitted claims. Others are refused, since an unknown claim could change the meaning of
    /// the rest.
    private static let required = ["v", "aud", "challenge", "decision", "context", "nonce", "uv", "iat"]
    private static let optional = ["request", "number", "place", "posture", "uv_age"]

    /// Compares by bytes, since Swift treats canonically equivalent strings as equal.
    private static func same(_ value: JSONValue?, _ text: String) -> Bool {
        value?.string?.hasSameBytes(as: text) == true
    }
}
