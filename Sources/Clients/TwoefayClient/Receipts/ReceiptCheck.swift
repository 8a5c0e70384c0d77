import Attestation
import Bytes
import Crypto
import JSON

/// The method by which a phone verified its owner, from the weakest to the strongest.
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

/// The result of a successful check: facts that do not depend on trust in the relay.
public struct Approval: Sendable, Equatable {
    /// The id of the phone that approved.
    public let device: String
    /// The method by which the phone verified its owner. That of a page counts only with an assertion
    /// of its authenticator, and then as `passcode`.
    public let userVerification: UserVerification
    /// The seconds between that verification and the signature, as the phone states it; nil if it
    /// stated no age.
    public let userVerificationAge: Int64?
    /// The time of the signature by the phone's clock, in seconds since 1970. The check does not
    /// verify that clock.
    public let signedAt: Int64
}

/// Checks a receipt, so that a website need not trust the relay.
///
/// A receipt passes only if a pinned phone of the user signed an approval of exactly this request.
/// The signature also covers the context, so the check compares what the phone showed with what the
/// website sent. A relay that lies can refuse or delay a login, but it cannot make this check
/// succeed.
///
/// Three conditions are the website's responsibility. It pins the phones of the user
/// (`BindingCheck`), keeps the `LoginRecord` itself, and spends each request only once. Tested in
/// `ReceiptCheckTests.swift`, `ReceiptFormTests.swift` and, with a relay that lies,
/// `LyingRelayTests.swift`.
///
///     let check = ReceiptCheck(origin: "https://login.example.com:8080", website: "shop")
///     let evidence = try LoginEvidence(outcome)
///     let approval = try await check.approval(
///         evidence, to: asked, from: phones, at: now,
///         spend: { await openRequests.remove($0) != nil })
public struct ReceiptCheck: Sendable {
    private let audience: String
    private let website: String
    private let displayName: String?
    private let leastVerification: UserVerification
    private let longestVerificationAge: Int64?
    private let leastDigits: Int
    private let longestAge: Int64

    /// Creates a check with the requirements of one website.
    ///
    /// - Parameters:
    ///   - origin: the origin of the relay, as in its settings: `https://host:port`.
    ///   - website: the name of this website, as in its certificate.
    ///   - displayName: the name of this website that phones must show; nil to accept the relay's
    ///     choice.
    ///   - leastVerification: the weakest accepted `uv`.
    ///   - longestVerificationAge: the longest accepted `uv_age` in seconds, as the policy
    ///     `max-uv-age` has it; nil to accept a verification at any time.
    ///   - leastDigits: the smallest number of digits of the number; 0 only if the website's policy
    ///     requires no number. A relay that lies can omit the number for the website and the phone
    ///     alike, so that the person approves out of habit. Only the website knows that a number
    ///     was required.
    ///   - longestAge: the longest time from `/login` to the check, in seconds. No challenge lives
    ///     longer than 600 seconds.
    public init(
        origin: String, website: String, displayName: String? = nil,
        leastVerification: UserVerification = UserVerification.none, longestVerificationAge: Int64? = nil,
        leastDigits: Int = 2, longestAge: Int64 = 600
    ) {
        audience = "\(origin)#\(website)"
        self.website = website
        self.displayName = displayName
        self.leastVerification = leastVerification
        self.longestVerificationAge = longestVerificationAge
        self.leastDigits = leastDigits
        self.longestAge = longestAge
    }

    /// Checks the evidence for one login.
    ///
    /// - Parameters:
    ///   - answered: the relay's evidence.
    ///   - asked: the website's own record of the request.
    ///   - phones: the phones pinned for the user that `asked` names, and no others.
    ///   - now: the time by the website's own clock, in seconds since 1970. The relay's time is not
    ///     trusted.
    ///   - spend: removes the request from the open ones atomically, and returns true only if this
    ///     call removed it. It is called last, so a receipt that fails another check uses up
    ///     nothing.
    /// - Returns: the approval, which is certain even if the relay lies.
    public func approval(
        _ answered: LoginEvidence, to asked: LoginRecord, from phones: [PinnedPhone], at now: Int64,
        spend: (_ request: String) async -> Bool
    ) async throws(ReceiptFault) -> Approval {
        let approval = try approval(answered, to: asked, from: phones)
        try requireYoung(asked, at: now)
        guard await spend(asked.request) else { throw .requestUsed }
        return approval
    }

    func requireYoung(_ asked: LoginRecord, at now: Int64) throws(ReceiptFault) {
        guard now - asked.askedAt <= longestAge else { throw .age }
    }

    /// Checks the evidence without its age, and spends nothing.
    func approval(
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
        let verified = Self.verification(claims.userVerification, answered, by: phone)
        guard verified >= leastVerification else { throw .userVerification }
        if let longestVerificationAge {
            guard verified > UserVerification.none, let age = claims.userVerificationAge,
                (0...longestVerificationAge).contains(age)
            else { throw .userVerificationAge }
        }
        guard asked.number?.utf8.count ?? 0 >= leastDigits else { throw .digits }
        return Approval(
            device: phone.device, userVerification: verified, userVerificationAge: claims.userVerificationAge,
            signedAt: claims.issuedAt)
    }

    /// The verification that counts. A page cannot bind its key to a check of its owner, so its word
    /// needs the assertion. That does not say how the owner was verified.
    private static func verification(
        _ stated: UserVerification, _ answered: LoginEvidence, by phone: PinnedPhone
    ) -> UserVerification {
        guard let web = phone.web else { return stated }
        guard let passkey = web.passkey, let owner = answered.owner,
            (try? owner.verify(over: answered.receipt, by: passkey, of: web.app)) != nil
        else { return UserVerification.none }
        return min(stated, .passcode)
    }

    /// Checks the signature and returns the header and claims. No claim is read before the
    /// signature is verified.
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

/// The claims of a phone's signed decision, version 1.
private struct DecisionClaims {
    let audience: String
    let challenge: String
    let request: String?
    let decision: String
    let number: String?
    let contextDigest: [UInt8]
    let userVerification: UserVerification
    let userVerificationAge: Int64?
    let issuedAt: Int64

    init?(_ payload: [UInt8]) {
        guard let claims = (try? JSONReader.read(payload))?.object, claims["v"]?.integer == 1,
            let audience = claims["aud"]?.string, let challenge = claims["challenge"]?.string,
            let decision = claims["decision"]?.string, claims["nonce"]?.string != nil,
            let digest = claims["context"]?.string.flatMap({ Base64URL.decode($0) }), digest.count == 32,
            let word = claims["uv"]?.string, let verification = UserVerification(rawValue: word),
            let issuedAt = claims["iat"]?.integer,
            // Each of the two is a text or absent: the number 7 is not the text "07".
            claims["request"] == nil || claims["request"]?.string != nil,
            claims["number"] == nil || claims["number"]?.string != nil,
            claims["uv_age"] == nil || claims["uv_age"]?.integer != nil
        else { return nil }
        self.audience = audience
        self.challenge = challenge
        request = claims["request"]?.string
        self.decision = decision
        number = claims["number"]?.string
        contextDigest = digest
        userVerification = verification
        userVerificationAge = claims["uv_age"]?.integer
        self.issuedAt = issuedAt
    }
}
