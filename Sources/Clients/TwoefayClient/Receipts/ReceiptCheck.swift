import Bytes
import Crypto
import JSON

/// How a phone made sure of its owner; more is greater.
public enum UserVerification: String, Sendable, CaseIterable, Comparable {
    case none, passcode, biometric

    public static func < (a: Self, b: Self) -> Bool { a.rank < b.rank }

    private var rank: Int {
        switch self {
        case .none: 0
        case .passcode: 1
        case .biometric: 2
        }
    }
}

/// What is certain after the check, without trusting the relay.
public struct Approval: Sendable, Equatable {
    public let device: String
    public let userVerification: UserVerification
    /// The phone's clock when it signed, in seconds since 1970; nobody checked that clock.
    public let signedAt: Int64
}

/// The check that makes it unnecessary to trust the relay: that one pinned phone approved exactly what this website
/// asked, and showed its owner nothing else.
public struct ReceiptCheck: Sendable {
    private let audience: String
    private let website: String
    private let displayName: String?
    private let leastVerification: UserVerification
    private let leastDigits: Int
    private let longestAge: Int64

    /// - Parameters:
    ///   - origin: of the relay, as in its settings: `https://host:port`.
    ///   - website: this website's name, as in its certificate.
    ///   - displayName: what phones are to call this website; nil leaves that to the relay.
    ///   - leastVerification: what this website wants of `uv`.
    ///   - leastDigits: of the number; 0 only for a website whose policy asks for none. A relay that lies can leave the number out, for the website and the phone alike, and
    ///     make a person say yes by habit: only the website can know that there should have been one.
    ///   - longestAge: seconds from /login to the check; no challenge lives longer than 600.
    public init(
        origin: String, website: String, displayName: String? = nil,
        leastVerification: UserVerification = UserVerification.none, leastDigits: Int = 2, longestAge: Int64 = 600
    ) {
        audience = "\(origin)#\(website)"
        self.website = website
        self.displayName = displayName
        self.leastVerification = leastVerification
        self.leastDigits = leastDigits
        self.longestAge = longestAge
    }

    /// - Parameters:
    ///   - phones: those pinned for the user whom `asked` names, and of no other.
    ///   - now: by this website's own clock, in seconds since 1970: what the relay says of time is not believed either.
    ///   - spend: takes the request out of those that are open, in one step; false unless this very call did. It is called
    ///     last, so that a receipt which is refused for anything else uses nothing up.
    public func approval(
        _ answered: LoginEvidence, to asked: LoginRecord, from phones: [PinnedPhone], at now: Int64,
        spend: (_ request: String) async -> Bool
    ) async throws(ReceiptFault) -> Approval {
        let approval = try approval(answered, to: asked, from: phones)
        guard now - asked.askedAt <= longestAge else { throw .age }
        guard await spend(asked.request) else { throw .requestUsed }
        return approval
    }

    private func approval(
        _ answered: LoginEvidence, to asked: LoginRecord, from phones: [PinnedPhone]
    ) throws(ReceiptFault) -> Approval {
        guard let phone = phones.first(where: { $0.device.isExactly(answered.device) }) else { throw .unknownDevice }
        let (header, claims) = try signed(answered.receipt, by: phone)
        guard claims.audience.isExactly(audience) else { throw .audience }
        guard let device = header.keyID, device.isExactly(phone.device) else { throw .device }
        guard claims.decision.isExactly("approve") else { throw .decision(claims.decision) }
        // A missing request must not match an empty one: it was never asked.
        guard let request = claims.request, request.isExactly(asked.request), !request.isEmpty else { throw .request }
        guard claims.number.isExactly(asked.number) else { throw .number }
        guard let context = Base64URL.decode(answered.context), context.count <= ShownContext.maxBytes else {
            throw .context("not base64url, or too long")
        }
        guard SHA256.hash(context) == claims.contextDigest else { throw .contextDigest }
        try ShownContext(context).agree(with: asked, website: website, displayName: displayName)
        guard claims.challenge.isExactly(asked.challenge) else { throw .challenge }
        guard claims.userVerification >= leastVerification else { throw .userVerification }
        guard asked.number?.utf8.count ?? 0 >= leastDigits else { throw .digits }
        return Approval(
            device: phone.device, userVerification: claims.userVerification, signedAt: claims.issuedAt)
    }

    /// The signature comes before everything that stands under it.
    private func signed(
        _ receipt: String, by phone: PinnedPhone
    ) throws(ReceiptFault) -> (header: JWSObject, claims: DecisionClaims) {
        let object: JWSObject
        do throws(JWSError) {
            object = try JWS.parse(receipt, algorithm: .es256)
        } catch {
            throw .malformed(error.description)
        }
        guard object.verify(phone.key) else { throw .signature }
        guard let type = object.type, type.isExactly("twoefay-decision+jwt") else { throw .type }
        guard let claims = DecisionClaims(object.payload) else { throw .claims }
        return (object, claims)
    }
}

/// What a phone signs, version 1.
private struct DecisionClaims {
    let audience: String
    let challenge: String
    let request: String?
    let decision: String
    let number: String?
    let contextDigest: [UInt8]
    let userVerification: UserVerification
    let issuedAt: Int64

    init?(_ payload: [UInt8]) {
        guard let claims = (try? JSONReader.read(payload))?.object, claims["v"]?.integer == 1,
            let audience = claims["aud"]?.string, let challenge = claims["challenge"]?.string,
            let decision = claims["decision"]?.string, claims["nonce"]?.string != nil,
            let digest = claims["context"]?.string.flatMap({ Base64URL.decode($0) }), digest.count == 32,
            let word = claims["uv"]?.string, let verification = UserVerification(rawValue: word),
            let issuedAt = claims["iat"]?.integer,
            // There as texts or not at all: a number 7 is not the text "07".
            claims["request"] == nil || claims["request"]?.string != nil,
            claims["number"] == nil || claims["number"]?.string != nil
        else { return nil }
        self.audience = audience
        self.challenge = challenge
        request = claims["request"]?.string
        self.decision = decision
        number = claims["number"]?.string
        contextDigest = digest
        userVerification = verification
        self.issuedAt = issuedAt
    }
}
