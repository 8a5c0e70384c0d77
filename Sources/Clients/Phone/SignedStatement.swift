import Bytes
import Crypto
import JSON
import World

/// The statements that a phone signs.
///
/// Invariant: one kind of statement cannot be used as another, because each has its own `typ`. It
/// cannot be used at another relay or website either, because `aud` names both. Tested in
/// `ProtocolPageTests.swift` and `ResponderTests.swift`.
public enum SignedStatement {
    /// The person's decision about a challenge.
    public enum Decision: Sendable, Equatable {
        /// An approval, with the number from the website if the challenge has one.
        case approve(number: String?)
        case deny
        /// A report that another person is trying to log in.
        case fraud

        public var word: String {
            switch self {
            case .approve: "approve"
            case .deny: "deny"
            case .fraud: "fraud"
            }
        }
    }

    /// The method by which the phone verified its owner.
    public enum UserVerification: String, Sendable, CaseIterable {
        case none, passcode, biometric
    }

    /// Makes the proof of an enrolment: the phone holds this key, and binds it to this activation
    /// code and device token (or to none).
    static func enrolment(_ enrolment: Enrolment, code: String, at now: Timestamp) throws(CryptoFailure) -> String {
        var claims: JSONObject = [
            "v": 1, "aud": .string(enrolment.audience), "id_token": .string(enrolment.token),
            "activation_code": .string(code),
        ]
        if let pushToken = enrolment.pushToken { claims.set("dev_token", .string(pushToken)) }
        if let agreement = enrolment.agreementKey { claims.set("agreement", .object(agreement.publicKey.jwk)) }
        claims.set("iat", .integer(now.seconds))
        return try sign("twoefay-enrol+jwt", ("jwk", .object(enrolment.key.publicKey.jwk)), claims, enrolment.key)
    }

    /// Makes the binding: a statement to the website that this is the phone's key. It is
    /// authenticated with the secret that the website added to the activation URI. The relay only
    /// passes it on.
    static func binding(_ enrolment: Enrolment, websiteKey: Secret) -> String {
        var claims: JSONObject = [
            "v": 1, "aud": .string(enrolment.audience), "id_token": .string(enrolment.token),
            "jwk": .object(enrolment.key.publicKey.jwk),
        ]
        if let agreement = enrolment.agreementKey { claims.set("agreement", .object(agreement.publicKey.jwk)) }
        return JWS.sign(
            header: ["typ": "twoefay-binding+jwt"], payload: JSONWriter.write(claims), secret: websiteKey)
    }

    /// Makes the signed decision. It contains the digest of the exact context bytes that the phone
    /// showed.
    static func decision(
        _ decision: Decision, about question: ChallengePrompt, by enrolment: Enrolment, device: String,
        uv: UserVerification, uvAge: Int64? = nil, place: PhonePlace? = nil, posture: PhonePosture? = nil,
        at now: Timestamp
    ) throws(CryptoFailure) -> String {
        var claims: JSONObject = [
            "v": 1, "aud": .string(enrolment.audience), "challenge": .string(question.challenge),
        ]
        // The website's nonce is left out if the context has none.
        if let request = question.context.request { claims.set("request", .string(request)) }
        claims.set("decision", .string(decision.word))
        if case .approve(let number?) = decision { claims.set("number", .string(number)) }
        claims.set("context", .string(Base64URL.encode(SHA256.hash(question.bytes))))
        claims.set("nonce", .string(question.nonce))
        claims.set("uv", .string(uv.rawValue))
        if question.demands?.maxUVAge != nil, let uvAge { claims.set("uv_age", .integer(uvAge)) }
        // A website that has not asked for the place does not get it.
        if question.asksPlace, let place { claims.set("place", .string(place.text)) }
        // A website without demands does not get the state of the phone either.
        if question.demands?.asksPosture == true, let posture { claims.set("posture", .object(posture.claim)) }
        claims.set("iat", .integer(now.seconds))
        return try sign("twoefay-decision+jwt", ("kid", .string(device)), claims, enrolment.key)
    }

    /// Makes the statement that sets the phone's device token; an empty token means that the phone
    /// polls.
    static func pushToken(
        _ token: String, of enrolment: Enrolment, device: String, at now: Timestamp
    ) throws(CryptoFailure) -> String {
        try sign(
            "twoefay-token+jwt", ("kid", .string(device)),
            [
                "v": 1, "aud": .string(enrolment.audience), "dev_token": .string(token), "iat": .integer(now.seconds),
            ], enrolment.key)
    }

    /// Makes the report of a phone about itself.
    static func status(
        _ status: PhoneStatus, of enrolment: Enrolment, device: String, at now: Timestamp
    ) throws(CryptoFailure) -> String {
        var claims: JSONObject = ["v": 1, "aud": .string(enrolment.audience), "iat": .integer(now.seconds)]
        for claim in status.claims.members { claims.set(claim.name, claim.value) }
        return try sign("twoefay-status+jwt", ("kid", .string(device)), claims, enrolment.key)
    }

    /// Makes the statement with which the phone leaves, or asks whether it was unbound.
    static func goodbye(
        leaves: Bool, nonce: String, of enrolment: Enrolment, device: String, at now: Timestamp
    ) throws(CryptoFailure) -> String {
        try sign(
            "twoefay-goodbye+jwt", ("kid", .string(device)),
            [
                "v": 1, "aud": .string(enrolment.audience), "nonce": .string(nonce), "leaves": .bool(leaves),
                "iat": .integer(now.seconds),
            ], enrolment.key)
    }

    /// Makes the statement that sets, changes, resets or unlocks the phone's PIN.
    static func pin(
        _ change: String, version: Int64, key: P256PublicKey, pukKey: P256PublicKey?, unlockCode: String? = nil,
        of enrolment: Enrolment, device: String, at now: Timestamp
    ) throws(CryptoFailure) -> String {
        var claims: JSONObject = [
            "v": 1, "aud": .string(enrolment.audience), "change": .string(change), "version": .integer(version),
            "pin": .object(key.jwk),
        ]
        claims.set("puk", pukKey.map { .object($0.jwk) })
        claims.set("unlock_code", unlockCode.map { .string($0) })
        claims.set("iat", .integer(now.seconds))
        return try sign("twoefay-pin+jwt", ("kid", .string(device)), claims, enrolment.key)
    }

    /// Signs what a statement signs, with the key of the PIN or PUK.
    static func signature(over compact: String, by key: P256PrivateKey) throws(CryptoFailure) -> String {
        let input = compact.split(separator: ".").dropLast().joined(separator: ".")
        return Base64URL.encode(try key.sign(Array(input.utf8)))
    }

    /// Makes the request for the secret of the phone's codes. It names the key to which the relay
    /// seals the secret.
    static func secretRequest(
        of enrolment: Enrolment, agreement: P256PublicKey, device: String, at now: Timestamp
    ) throws(CryptoFailure) -> String {
        try sign(
            "twoefay-secret+jwt", ("kid", .string(device)),
            [
                "v": 1, "aud": .string(enrolment.audience), "agreement": .object(agreement.jwk),
                "iat": .integer(now.seconds),
            ], enrolment.key)
    }

    static func sign(
        _ type: String, _ who: (name: String, value: JSONValue), _ claims: JSONObject, _ key: P256PrivateKey
    ) throws(CryptoFailure) -> String {
        try JWS.sign(
            header: JSONObject([("typ", .string(type)), (who.name, who.value)]), payload: JSONWriter.write(claims),
            key: key)
    }
}
