package twoefay.phone;

import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The codes that the phone shows itself (RFC 6238). They count at the relay of the enrolment only.
 */
public final class Totp {
    private static final String BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

    /**
     * The secret as the relay sealed it, with its {@code factor}: the form in which it is stored.
     */
    final Json stored;
    private final byte[] secret;
    private final String algorithm;
    private final int digits;
    private final int period;

    Totp(Json stored) throws Json.Malformed {
        Long digits = stored.integer("digits");
        Long period = stored.integer("period");
        String name = stored.text("algorithm");
        secret = decode(stored.text("secret"));
        if (!Long.valueOf(1).equals(stored.integer("v")) || stored.text("factor") == null
            || secret == null || secret.length < 16 || name == null || !name.matches("sha1|sha256|sha512")
            || digits == null || digits < 6 || digits > 8 || period == null || period < 10 || period > 300) {
            throw new Json.Malformed("the secret of codes has an unknown form");
        }
        this.stored = stored;
        this.digits = digits.intValue();
        this.period = period.intValue();
        algorithm = "Hmac" + name.toUpperCase(java.util.Locale.ROOT);
    }

    /** Opens a secret that the relay has sealed for this phone, and refuses any other. */
    static Totp open(String sealed, String factor, Enrolment enrolment, Keys.AgreementKey key)
        throws GeneralSecurityException, Json.Malformed {
        String audience = enrolment.audience();
        Jwe opened = Jwe.open(sealed, key, audience, enrolment.device + "." + factor);
        if (!"twoefay-secret+jwe".equals(opened.header.text("typ"))
            || !audience.equals(opened.header.text("aud"))
            || !enrolment.device.equals(opened.header.text("kid"))
            || !factor.equals(opened.header.text("factor"))) {
            throw new Json.Malformed("the secret is for another phone, website or factor");
        }
        return new Totp(Json.read(opened.plaintext).put("factor", factor));
    }

    /** Returns the code at a time of the relay's clock. */
    public String code(long millis) throws GeneralSecurityException {
        Mac mac = Mac.getInstance(algorithm);
        mac.init(new SecretKeySpec(secret, algorithm));
        long counter = Math.max(0, millis / 1000) / period;
        byte[] digest = mac.doFinal(ByteBuffer.allocate(8).putLong(counter).array());
        // RFC 4226, section 5.3: the last four bits say where the number begins.
        int start = digest[digest.length - 1] & 15;
        int number = ByteBuffer.wrap(digest).getInt(start) & 0x7FFF_FFFF;
        String code = String.format(java.util.Locale.ROOT, "%010d", number);
        return code.substring(code.length() - digits);
    }

    /** The seconds until the next code. */
    public int secondsLeft(long millis) {
        return period - (int) (Math.max(0, millis / 1000) % period);
    }

    private static byte[] decode(String text) {
        if (text == null || !text.matches("[A-Z2-7]+")) {
            return null;
        }
        ByteBuffer bytes = ByteBuffer.allocate(text.length() * 5 / 8);
        int bits = 0;
        int count = 0;
        for (char each : text.toCharArray()) {
            bits = (bits << 5 | BASE32.indexOf(each)) & 0xFFF;
            count += 5;
            if (count >= 8) {
                count -= 8;
                bytes.put((byte) (bits >> count));
            }
        }
        return bytes.array();
    }
}
