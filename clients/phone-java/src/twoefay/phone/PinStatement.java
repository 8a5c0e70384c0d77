package twoefay.phone;

import java.security.GeneralSecurityException;
import java.security.interfaces.ECPublicKey;
import java.util.ArrayList;
import java.util.List;

/** The statement of the relay's authority about the pins that phones have from now on. */
final class PinStatement {
    final List<String> pins = new ArrayList<>();
    final long sequence;

    /**
     * Reads a statement, and refuses it unless all conditions of the protocol are met. Without the
     * key of the present authority, nobody can state anything.
     *
     * @param now the time of the relay's clock in seconds
     */
    PinStatement(String text, Enrolment enrolment, long now) throws Json.Malformed, GeneralSecurityException {
        Jws statement = new Jws(text);
        ECPublicKey signer = P256.publicKey(statement.header.object("jwk"));
        String signersPin = Base64Url.encode(P256.sha256(signer.getEncoded()));
        Json claims = statement.claims;
        Long sequence = claims.integer("seq");
        Long end = claims.integer("exp");
        for (Object pin : claims.list("pins") == null ? new ArrayList<>() : claims.list("pins")) {
            if (Base64Url.decode(Json.as(String.class, pin), 32) == null || pins.contains(pin)) {
                throw new Json.Malformed("a pin is malformed, or appears twice");
            }
            pins.add((String) pin);
        }
        require(statement.isSignedBy(signer) && statement.hasType("twoefay-pins+jwt"), "its signature is wrong");
        require(Long.valueOf(1).equals(claims.integer("v")), "its version is unknown");
        require(enrolment.pins.contains(signersPin), "another authority has signed it");
        require(enrolment.relay.text.equals(claims.text("aud")), "it is for another relay");
        require(end != null && end > now, "it has ended");
        require(sequence != null && sequence > enrolment.pinsSequence, "a later one was taken before");
        require(pins.size() == 1 || pins.size() == 2, "it has no pins, or too many");
        require(pins.contains(signersPin), "its signer is not among its pins");
        this.sequence = sequence;
    }

    private static void require(boolean isRight, String reason) throws Json.Malformed {
        if (!isRight) {
            throw new Json.Malformed(reason);
        }
    }
}
