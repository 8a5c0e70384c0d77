package twoefay.phone;

import java.security.GeneralSecurityException;
import java.security.PublicKey;
import java.security.Signature;
import java.security.cert.X509Certificate;
import java.security.interfaces.ECPublicKey;
import java.security.interfaces.RSAPublicKey;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * A compact JWS (RFC 7515): header, payload and signature in base64url, with dots between them.
 *
 * <p>The algorithm follows from the key that the caller trusts. The header only has to name it: a
 * header that chooses the algorithm is the classic fault of JWS.
 */
public final class Jws {
    private static final int MOST_CHARACTERS = 16_384;

    final Json header;
    final Json claims;
    private final String input;
    private final byte[] signature;

    /** Reads a JWS, and checks nothing but its form. */
    Jws(String compact) throws Json.Malformed {
        String[] parts = compact.length() > MOST_CHARACTERS ? new String[0] : compact.split("\\.", -1);
        byte[] head = parts.length == 3 ? Base64Url.decode(parts[0]) : null;
        byte[] payload = parts.length == 3 ? Base64Url.decode(parts[1]) : null;
        signature = parts.length == 3 ? Base64Url.decode(parts[2]) : null;
        if (head == null || payload == null || signature == null) {
            throw new Json.Malformed("it is no compact JWS");
        }
        header = Json.read(head);
        claims = Json.read(payload);
        input = parts[0] + "." + parts[1];
        if (header.names().contains("crit")) {
            throw new Json.Malformed("its header has a member that must be understood");
        }
    }

    /** Signs with a key of the phone. {@code who} is {@code jwk} or {@code kid}. */
    static String sign(String type, String who, Object value, Json claims, Keys.SigningKey key)
        throws GeneralSecurityException {
        Json header = new Json().put("alg", "ES256").put("typ", type).put(who, value);
        String input = input(header, claims);
        return input + "." + Base64Url.encode(key.sign(P256.utf8(input)));
    }

    /** Authenticates with a secret (HS256). */
    static String authenticate(String type, Json claims, byte[] secret) throws GeneralSecurityException {
        String input = input(new Json().put("alg", "HS256").put("typ", type), claims);
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(secret, "HmacSHA256"));
        return input + "." + Base64Url.encode(mac.doFinal(P256.utf8(input)));
    }

    private static String input(Json header, Json claims) {
        return Base64Url.encode(header.bytes()) + "." + Base64Url.encode(claims.bytes());
    }

    /** Returns the text that the signature of a JWS covers. */
    static byte[] signedPart(String compact) {
        return P256.utf8(compact.substring(0, compact.lastIndexOf('.')));
    }

    boolean hasType(String type) {
        return type.equals(header.text("typ"));
    }

    /** Whether the relay's certificate has signed it, and its header names this certificate. */
    boolean isSignedBy(X509Certificate certificate) throws GeneralSecurityException {
        String thumbprint = Base64Url.encode(P256.sha256(certificate.getEncoded()));
        return thumbprint.equals(header.text("x5t#S256")) && isSignedBy(certificate.getPublicKey());
    }

    boolean isSignedBy(PublicKey key) throws GeneralSecurityException {
        if (key instanceof ECPublicKey) {
            int bits = ((ECPublicKey) key).getParams().getCurve().getField().getFieldSize();
            return bits == 384
                ? verifies("ES384", "SHA384withECDSA", key, 48)
                : bits == 256 && verifies("ES256", "SHA256withECDSA", key, 32);
        }
        return key instanceof RSAPublicKey && verifies("RS256", "SHA256withRSA", key, 0);
    }

    private boolean verifies(String name, String algorithm, PublicKey key, int size)
        throws GeneralSecurityException {
        if (!name.equals(header.text("alg")) || size > 0 && signature.length != 2 * size) {
            return false;
        }
        Signature check = Signature.getInstance(algorithm);
        check.initVerify(key);
        check.update(P256.utf8(input));
        try {
            return check.verify(size > 0 ? Der.sequence(signature) : signature);
        } catch (java.security.SignatureException malformed) {
            return false;
        }
    }
}
