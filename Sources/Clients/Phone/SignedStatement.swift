import Bytes
import Crypto
import JSON
import World

/// What a phone signs. Each kind has its own `typ`, so that none can stand for another, and names whom it is for.
public enum SignedStatement {
    /// What the person decided.
    public enum Decision: Sendable, Equatable {
        /// With the number that the person read on the website, where one is asked.
        case approve(number: String?)
        case deny
        /// It was not me.
        case fraud

        public var word: String {
            switch self {
            case .approve: "approve"
            case .deny: "deny"
            case .fraud: "fraud"
            }
        }
    }

    /// How the phone made sure of its owner.
    public enum UserVerification: String, Sendable, CaseIterable {
        case none, passcode, biometric
    }

    /// I hold this key, and bind it to this activation alone, and to this push token or to none.
    static func enrolment(_ enrolment: Enrolment, code: String, at now: Timestamp) throws(CryptoFailure) -> String {
        var claims: JSONObject = [
            "v": 1, "aud": .string(enrolment.audience), "id_token": .string(enrolment.token),
            "activation_code": .string(code),
        ]
        if let pushToken = enrolment.pushToken { claims.set("dev_token", .string(pushToken)) }
        claims.set("iat", .integer(now.seconds))
        return try sign("twoefay-enrol+jwt", ("jwk", .object(enrolment.key.publicKey.jwk)), claims, enrolment.key)
    }

    /// For the website alone, under the key that it put into the activation: this is the phone's key. The relay only
    /// passes it on.
    static func binding(_ enrolment: Enrolment, websiteKey: Secret) -> String {
        let claims: JSONObject = [
            "v": 1, "aud": .string(enrolment.audience), "id_token": .string(enrolment.token),
            "jwk": .object(enrolment.key.publicKey.jwk),
        ]
        return JWS.sign(
            header: ["typ": "twoefay-binding+jwt"], payload: JSONWriter.write(claims), secret: websiteKey)
    }

    /// What the person decided about what was shown, byte for byte.
    static func decision(
        _ decision: Decision, about question: ChallengePrompt, by enrolment: Enrolment, device: String,
        uv: UserVerification,
        at now: Timestamp
    ) throws(CryptoFailure) -> String {
        var claims: JSONObject = [
            "v": 1, "aud": .string(enrolment.audience), "challenge": .string(question.challenge),
        ]
        // The website's nonce: what it did not say is left out here too.
        if let request = question.context.request { claims.set("request", .string(request)) }
        claims.set("decision", .string(decision.word))
        if case .approve(let number?) = decision { claims.set("number", .string(number)) }
        claims.set("context", .string(Base64URL.encode(SHA256.hash(question.bytes))))
        claims.set("nonce", .string(question.nonce))
        claims.set("uv", .string(uv.rawValue))
        claims.set("iat", .integer(now.seconds))
        return try sign("twoefay-decision+jwt", ("kid", .string(device)), claims, enrolment.key)
    }

    /// The push service finds me there from now on; nowhere, where it is empty.
    static func pushToken(
        _ token: String, of enrolment: Enrolment, device: String, at now: Timestamp
    ) throws(CryptoFailure) -> String {
        try sign(
            "twoefay-token+jwt", ("kid", .string(device)),
            [
                "v": 1, "aud": .string(enrolment.audience), "dev_token": .string(token), "iat": .integer(now.seconds),
            ], enrolment.key)
    }

    private static func sign(
        _ type: String, _ who: (name: String, value: JSONValue), _ claims: JSONObject, _ key: P256PrivateKey
    ) throws(CryptoFailure) -> String {
        try JWS.sign(
            header: JSONObject([("typ", .string(type)), (who.name, who.value)]), payload: JSONWriter.write(claims),
            key: key)
    }
}
