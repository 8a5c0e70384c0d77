package android.security.keystore;

/** A stub, against which the sketch in README.md is compiled. */
public final class KeyProperties {
    public static final int PURPOSE_SIGN = 4;
    public static final int PURPOSE_AGREE_KEY = 64;
    public static final String DIGEST_SHA256 = "SHA-256";
}
