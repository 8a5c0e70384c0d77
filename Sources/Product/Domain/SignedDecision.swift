import Bytes
import Crypto
import JSON

/// What the owner of a phone decided about what was shown, signed by the phone: a `twoefay-decision+jwt`.
///
/// A pure value, judged without a clock: whether it comes in time, and whether its number is the right one, is decided
/// by whoever keeps the challenge.
public struct SignedDecision: Sendable, Equatable {
    public static let type = "twoefay-decision+jwt"
    /// Several times what the longest claims come to.
    public static let maxBytes = 8192

    public let decision: Decision
    /// What the person typed. Denying needs none: who says no must not have to look one up.
    public let number: String?
    public let uv: UserVerification
    /// Seconds, by the phone's clock: kept for the record and never judged.
    public let issuedAt: Int64

    /// What a decision must be about, to be one about this challenge by this phone.
    public struct Subject: Sendable {
        public let audience: String
        public let device: DeviceID
        public let key: P256PublicKey
        public let challenge: ChallengeID
        public let nonce: [UInt8]
        /// The exact bytes that were shown.
        public let context: [UInt8]
        public let asksNumber: Bool
        /// At /success, rather than at /failure.
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

    /// Whom a statement of a phone is for: one website at one relay.
    public static func audience(origin: String, website: String) -> String { "\(origin)#\(website)" }

    /// The decision, if it is signed by that phone and about that challenge in every point.
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
        self.decision = decision
        self.number = number
        self.uv = uv
        self.issuedAt = issuedAt
    }

    /// The claims, once the signature has been found to be that phone's.
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
        // With alg, which is never missing, and no others: no name stands twice.
        guard object.header.count == 3, object.header["kid"] != nil else { throw .malformed }
        guard same(object.header["kid"], subject.device.text) else { throw .key }
        guard object.verify(subject.key) else { throw .signature }
        guard let claims = (try? JSONReader.read(object.payload))?.object,
            required.allSatisfy({ claims[$0] != nil }),
            claims.count == required.count + optional.count(where: { claims[$0] != nil })
        else { throw .malformed }
        return claims
    }

    /// A claim that is not known could change what the others mean, so there may be none.
    private static let required = ["v", "aud", "challenge", "decision", "context", "nonce", "uv", "iat"]
    private static let optional = ["request", "number"]

    /// By bytes: Swift takes different spellings of a character for the same.
    private static func same(_ value: JSONValue?, _ text: String) -> Bool {
        value?.string.map { $0.utf8.elementsEqual(text.utf8) } == true
    }
}
