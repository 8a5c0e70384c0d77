package twoefay.phone;

import java.security.interfaces.ECPublicKey;
import java.time.Instant;

/** The relay's signed statement that this phone is unbound. */
public final class Farewell {
    /** {@code phone}, {@code code}, {@code website} or {@code operator}. */
    public final String by;
    public final Instant time;

    /** Reads claims whose signature, type and audience were checked. */
    Farewell(Json claims, Enrolment enrolment, ECPublicKey key, String nonce) throws Failure {
        if (!enrolment.device.equals(claims.text("device")) || !nonce.equals(claims.text("nonce"))
            || !P256.thumbprint(key).equals(claims.text("thumbprint")) || claims.text("by") == null) {
            throw Failure.unbelievable("the farewell is for another phone or request");
        }
        try {
            time = Context.time(claims, "time");
        } catch (Json.Malformed noTime) {
            throw Failure.unbelievable(noTime.getMessage());
        }
        by = Text.visible(claims.text("by"), 32);
    }
}
