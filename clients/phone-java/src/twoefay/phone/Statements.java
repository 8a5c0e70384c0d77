package twoefay.phone;

import java.security.GeneralSecurityException;
import java.security.interfaces.ECPublicKey;

/**
 * The statements that a phone signs.
 *
 * <p>Each has a {@code typ} of its own, so none can pass as another one, and an {@code aud}, so no
 * other relay or website accepts it. The order of the claims is that of
 * docs/phones/device-protocol.md; a test compares the bytes.
 */
final class Statements {
    private final Enrolment enrolment;
    private final Keys.SigningKey key;

    Statements(Enrolment enrolment, Keys.SigningKey key) {
        this.enrolment = enrolment;
        this.key = key;
    }

    private Json claims() {
        return new Json().put("v", 1).put("aud", enrolment.audience());
    }

    private static Json jwk(ECPublicKey key) {
        return key == null ? null : P256.jwk(key);
    }

    private String signed(String type, Json claims) throws GeneralSecurityException {
        return Jws.sign("twoefay-" + type + "+jwt", "kid", enrolment.device, claims, key);
    }

    /** The proof of an enrolment. */
    String proof(ECPublicKey agreement, long now) throws GeneralSecurityException {
        Json claims = claims()
            .put("id_token", enrolment.token)
            .put("activation_code", enrolment.activationCode)
            .put("dev_token", enrolment.pushToken)
            .put("agreement", jwk(agreement))
            .put("iat", now);
        return Jws.sign("twoefay-enrol+jwt", "jwk", P256.jwk(key.publicKey()), claims, key);
    }

    /** The binding, with which the website pins the key without trusting the relay. */
    String binding(ECPublicKey agreement) throws GeneralSecurityException {
        Json claims = claims()
            .put("id_token", enrolment.token)
            .put("jwk", P256.jwk(key.publicKey()))
            .put("agreement", jwk(agreement));
        return Jws.authenticate("twoefay-binding+jwt", claims, enrolment.websiteKey);
    }

    /** The decision about a challenge. It holds the digest of the bytes that the person saw. */
    String decision(Challenge challenge, Decision decision, long now) throws GeneralSecurityException {
        Challenge.Demands demands = challenge.demands;
        boolean asksAge = demands != null && demands.mostVerificationAge != null;
        Json claims = claims()
            .put("challenge", challenge.id)
            .put("request", challenge.context.request)
            .put("decision", decision.word)
            .put("number", challenge.context.numberDigits == 0 ? null : decision.number)
            .put("context", Base64Url.encode(P256.sha256(challenge.context.bytes)))
            .put("nonce", challenge.nonce)
            .put("uv", decision.verification)
            .put("uv_age", asksAge ? decision.verificationAge : null)
            .put("place", challenge.asksPlace ? decision.place : null)
            .put("posture", demands != null && demands.asksPosture ? decision.posture : null)
            .put("iat", now);
        return signed("decision", claims);
    }

    /** The proof of possession for one request (RFC 9449). */
    String dpop(String method, String path, String id, String nonce, long now) throws GeneralSecurityException {
        Json claims = new Json()
            .put("jti", id)
            .put("htm", method)
            .put("htu", enrolment.relay.text + path)
            .put("iat", now)
            .put("nonce", nonce);
        return Jws.sign("dpop+jwt", "jwk", P256.jwk(key.publicKey()), claims, key);
    }

    /** A change of the PIN. {@code puk} and {@code unlockCode} may be null. */
    String pin(String change, long version, PinSecret.Key pin, PinSecret.Key puk, String unlockCode, long now)
        throws GeneralSecurityException {
        Json claims = claims()
            .put("change", change)
            .put("version", version)
            .put("pin", P256.jwk(pin.publicKey))
            .put("puk", puk == null ? null : P256.jwk(puk.publicKey))
            .put("unlock_code", unlockCode)
            .put("iat", now);
        return signed("pin", claims);
    }

    String pushToken(String pushToken, long now) throws GeneralSecurityException {
        return signed("token", claims().put("dev_token", pushToken).put("iat", now));
    }

    String goodbye(boolean leaves, String nonce, long now) throws GeneralSecurityException {
        return signed("goodbye", claims().put("nonce", nonce).put("leaves", leaves).put("iat", now));
    }

    String status(Status status, long now) throws GeneralSecurityException {
        return signed("status", status.claims(claims().put("iat", now)));
    }

    String secretRequest(ECPublicKey agreement, long now) throws GeneralSecurityException {
        return signed("secret", claims().put("agreement", P256.jwk(agreement)).put("iat", now));
    }
}
