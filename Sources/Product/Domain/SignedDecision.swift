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
/// a `DecisionRefusal`; the caller records it and changes nothing. Unknown claims and header fields
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
    public init(_ compact: String, about subject: Subject) throws(DecisionRefusal) {
        let claims = try Self.claims(compact, by: subject)
        try Self.match(claims, subject)
        let decision: Decision = try Self.word("decision", of: claims)
        uv = try Self.word("uv", of: claims)
        guard let issuedAt = claims["iat"]?.integer else {
            throw .form(of: "iat", LocalizedText("a whole number of seconds", de: "eine ganze Zahl von Sekunden"))
        }
        guard (decision == .approve) == subject.approves else { throw .fault(.decision) }
        if let number = claims["number"], number.string == nil {
            throw .form(of: "number", LocalizedText("a string of digits", de: "einen String aus Ziffern"))
        }
        number = claims["number"]?.string
        if decision == .approve, (number != nil) != subject.asksNumber { throw .fault(.number) }
        place = try Self.place(of: claims)
        // A denial counts whatever the phone says about itself.
        uvAge = decision == .approve ? try Self.age(of: claims) : nil
        posture = decision == .approve ? try Self.posture(of: claims) : nil
        self.decision = decision
        self.issuedAt = issuedAt
    }

    /// Checks the claims that name the challenge.
    private static func match(_ claims: JSONObject, _ subject: Subject) throws(DecisionRefusal) {
        guard claims["v"] == 1 else { throw .form(of: "v", LocalizedText("the number 1", de: "die Zahl 1")) }
        guard same(claims["aud"], subject.audience) else { throw .fault(.audience) }
        guard same(claims["challenge"], subject.challenge.text) else { throw .fault(.challenge) }
        let nonce = claims["nonce"]?.string ?? ""
        guard Secret.matches(Array(nonce.utf8), Array(Base64URL.encode(subject.nonce).utf8)) else {
            throw .fault(.nonce)
        }
        switch Context.request(in: subject.context) {
        case let request?: guard same(claims["request"], request) else { throw .fault(.request) }
        case nil: guard claims["request"] == nil else { throw .fault(.request) }
        }
        let digest = Base64URL.encode(SHA256.hash(subject.context))
        guard same(claims["context"], digest) else { throw .fault(.context) }
    }

    private static func word<Word: RawRepresentable<String> & CaseIterable>(
        _ claim: String, of claims: JSONObject
    ) throws(DecisionRefusal) -> Word {
        guard let word = claims[claim]?.string.flatMap({ Word(rawValue: $0) }) else {
            let words = Word.allCases.map(\.rawValue).joined(separator: ", ")
            throw .form(of: claim, LocalizedText("one of \(words)", de: "einen dieser Werte: \(words)"))
        }
        return word
    }

    private static func place(of claims: JSONObject) throws(DecisionRefusal) -> CoarsePlace? {
        guard let claim = claims["place"] else { return nil }
        guard let place = claim.string.flatMap({ CoarsePlace($0) }) else {
            throw .form(
                of: "place",
                LocalizedText(
                    "latitude, comma and longitude, each with one decimal",
                    de: "Breite, Komma und Länge mit je einer Nachkommastelle"))
        }
        return place
    }

    private static func age(of claims: JSONObject) throws(DecisionRefusal) -> Int? {
        guard let claim = claims["uv_age"] else { return nil }
        guard let age = claim.integer.flatMap({ Int32(exactly: $0) }), age >= 0 else {
            throw .form(of: "uv_age", LocalizedText("a whole number of seconds", de: "eine ganze Zahl von Sekunden"))
        }
        return Int(age)
    }

    private static func posture(of claims: JSONObject) throws(DecisionRefusal) -> ReportedPosture? {
        guard let claim = claims["posture"] else { return nil }
        guard let posture = ReportedPosture(json: claim) else {
            throw .form(
                of: "posture",
                LocalizedText("an object of the documented members", de: "ein Objekt aus den dokumentierten Elementen"))
        }
        return posture
    }

    /// Returns the claims after checking that the signature is the phone's.
    private static func claims(_ compact: String, by subject: Subject) throws(DecisionRefusal) -> JSONObject {
        let object: JWSObject
        do {
            object = try JWS.parse(compact, maxBytes: maxBytes)
        } catch {
            throw .jws(error)
        }
        guard same(object.header["typ"], type) else { throw .fault(.type) }
        // Exactly `alg`, `typ` and `kid`; the parser guarantees `alg` and refuses duplicate names.
        guard object.header.count == 3, object.header["kid"] != nil else { throw .header }
        guard same(object.header["kid"], subject.device.text) else { throw .fault(.key) }
        guard object.verify(subject.key) else { throw .fault(.signature) }
        let payload: JSONValue
        do {
            payload = try JSONReader.read(object.payload)
        } catch {
            throw .notJSON(error)
        }
        guard let claims = payload.object else { throw .notAnObject }
        if let absent = required.first(where: { claims[$0] == nil }) { throw .missing(absent) }
        let isKnown = { (name: String) in (required + optional).contains { $0.hasSameBytes(as: name) } }
        if let other = claims.names.first(where: { !isKnown($0) }) { throw .unknown(other) }
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
