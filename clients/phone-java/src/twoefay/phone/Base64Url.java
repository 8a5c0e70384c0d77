package twoefay.phone;

import java.util.Base64;

/** Base64url without padding (RFC 4648, section 5). */
public final class Base64Url {
    private Base64Url() {}

    public static String encode(byte[] bytes) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
    }

    /**
     * Returns the bytes; null if the text is null, has other characters or padding, or is not the
     * only text for these bytes.
     */
    public static byte[] decode(String text) {
        if (text == null) {
            return null;
        }
        try {
            byte[] bytes = Base64.getUrlDecoder().decode(text);
            return encode(bytes).equals(text) ? bytes : null;
        } catch (IllegalArgumentException notBase64) {
            return null;
        }
    }

    /** Returns the bytes if there are exactly so many; null otherwise. */
    static byte[] decode(String text, int count) {
        byte[] bytes = decode(text);
        return bytes != null && bytes.length == count ? bytes : null;
    }
}
