package twoefay.phone;

import java.security.GeneralSecurityException;

/**
 * A signed change of the PIN. Keep it in memory only, also for sending it again: with the secret of
 * the phone, it is a test of the PIN.
 */
public final class PinChange {
    public enum Kind {
        /** The first PIN. It needs no proof. */
        SET("set"),
        /** A new PIN, by the present one. */
        CHANGE("change"),
        /** A new PIN, by the PUK. */
        RESET("reset"),
        /** A new PIN, by the 8 digits of the help desk. */
        UNLOCK("unlock");

        final String word;

        Kind(String word) {
            this.word = word;
        }
    }

    /** The new PUK: show it once, after the relay has accepted the change. Null with a change. */
    public final String puk;
    final Json body;

    PinChange(
        Kind kind, String proof, String newPin, String puk, long version, PinSecret secret, Statements statements,
        long now) throws GeneralSecurityException, Failure {
        String digits = proof == null ? "" : proof.replaceAll("[ -]", "");
        boolean isRight = kind == Kind.SET
            || kind == Kind.CHANGE && PinSecret.isPin(digits)
            || kind == Kind.RESET && PinSecret.isPuk(digits)
            || kind == Kind.UNLOCK && digits.matches("[0-9]{8}");
        if (!isRight || !PinSecret.isPin(newPin)) {
            throw Failure.unable("a PIN has 4 to 12 digits, a PUK 12, and a code of the help desk 8");
        }
        this.puk = puk;
        PinSecret.Key newKey = secret.pin(newPin);
        String code = kind == Kind.UNLOCK ? digits : null;
        String statement =
            statements.pin(kind.word, version, newKey, puk == null ? null : secret.puk(puk), code, now);
        body = new Json()
            .put("pin", statement)
            .put("pin_signature", kind == Kind.CHANGE ? secret.pin(digits).signature(statement) : null)
            .put("puk_signature", kind == Kind.RESET ? secret.puk(digits).signature(statement) : null);
    }
}
