/// The claims of everything that a phone signs, in the order of the protocol's page.
///
/// Invariant: one kind of statement cannot be used as another, because each has its own `typ`. It
/// cannot be used at another relay or website, because `aud` names both.
package enum Statement {
    package static func proof(
        _ enrolment: Enrolment, code: String, agreement: P256PublicKey?, at now: Timestamp
    ) -> JSONObject {
        var claims: JSONObject = [
            "v": 1, "aud": .string(enrolment.audience), "id_token": .string(enrolment.token),
            "activation_code": .string(code),
        ]
        claims["dev_token"] = enrolment.pushToken.map { .string($0) }
        claims["agreement"] = agreement.map { .object($0.jwk) }
        claims["iat"] = .integer(now.seconds)
        return claims
    }

    package static func binding(
        _ enrolment: Enrolment, key: P256PublicKey, agreement: P256PublicKey?
    ) -> JSONObject {
        var claims: JSONObject = [
            "v": 1, "aud": .string(enrolment.audience), "id_token": .string(enrolment.token), "jwk": .object(key.jwk),
        ]
        claims["agreement"] = agreement.map { .object($0.jwk) }
        return claims
    }

    package static func decision(
        _ answer: Answer, to challenge: Challenge, for audience: String, at now: Timestamp,
        _ cryptography: any Cryptography
    ) -> JSONObject {
        var claims: JSONObject = ["v": 1, "aud": .string(audience), "challenge": .string(challenge.id)]
        claims["request"] = challenge.context.request.map { .string($0) }
        claims["decision"] = .string(answer.decision.word)
        if case .approve(let number?) = answer.decision { claims["number"] = .string(number) }
        claims["context"] = .string(Base64URL.encode(cryptography.sha256(challenge.bytes)))
        claims["nonce"] = .string(challenge.nonce)
        claims["uv"] = .string(answer.verification.rawValue)
        // What the website has not asked for stays on the phone.
        if challenge.demands?.longestVerificationAge != nil {
            claims["uv_age"] = answer.verificationAge.map { .integer($0) }
        }
        if challenge.asksPlace { claims["place"] = answer.place.map { .string($0.text) } }
        if challenge.demands?.asksPosture == true { claims["posture"] = answer.posture.map { .object($0.claim) } }
        claims["iat"] = .integer(now.seconds)
        return claims
    }

    package static func pushToken(_ token: String, for audience: String, at now: Timestamp) -> JSONObject {
        ["v": 1, "aud": .string(audience), "dev_token": .string(token), "iat": .integer(now.seconds)]
    }

    package static func status(_ status: PhoneStatus, for audience: String, at now: Timestamp) -> JSONObject {
        var claims: JSONObject = ["v": 1, "aud": .string(audience), "iat": .integer(now.seconds)]
        for claim in status.claims.members { claims[claim.name] = claim.value }
        return claims
    }

    package static func goodbye(
        leaves: Bool, nonce: String, for audience: String, at now: Timestamp
    ) -> JSONObject {
        [
            "v": 1, "aud": .string(audience), "nonce": .string(nonce), "leaves": .bool(leaves),
            "iat": .integer(now.seconds),
        ]
    }

    package static func pin(
        _ change: String, version: Int64, pin: P256PublicKey, puk: P256PublicKey?, unlockCode: String?,
        for audience: String, at now: Timestamp
    ) -> JSONObject {
        var claims: JSONObject = [
            "v": 1, "aud": .string(audience), "change": .string(change), "version": .integer(version),
            "pin": .object(pin.jwk),
        ]
        claims["puk"] = puk.map { .object($0.jwk) }
        claims["unlock_code"] = unlockCode.map { .string($0) }
        claims["iat"] = .integer(now.seconds)
        return claims
    }

    package static func secret(agreement: P256PublicKey, for audience: String, at now: Timestamp) -> JSONObject {
        ["v": 1, "aud": .string(audience), "agreement": .object(agreement.jwk), "iat": .integer(now.seconds)]
    }

    package static func certificate(
        tag: String, request: String, for audience: String, at now: Timestamp, _ cryptography: any Cryptography
    ) -> JSONObject {
        [
            "v": 1, "aud": .string(audience), "tag": .string(tag),
            "csr": .string(Base64URL.encode(cryptography.sha256(Array(request.utf8)))), "iat": .integer(now.seconds),
        ]
    }

    package static func document(
        tag: String, label: String, digest: [UInt8], for audience: String, at now: Timestamp
    ) -> JSONObject {
        [
            "v": 1, "aud": .string(audience), "tag": .string(tag), "label": .string(label),
            "digest": .string(Base64URL.encode(digest)), "iat": .integer(now.seconds),
        ]
    }

    package static func dpop(
        _ method: String, _ url: String, id: String, nonce: String?, at now: Timestamp
    ) -> JSONObject {
        var claims: JSONObject = [
            "jti": .string(id), "htm": .string(method), "htu": .string(url), "iat": .integer(now.seconds),
        ]
        claims["nonce"] = nonce.map { .string($0) }
        return claims
    }
}
