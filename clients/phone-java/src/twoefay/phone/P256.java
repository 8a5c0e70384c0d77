package twoefay.phone;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.AlgorithmParameters;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.interfaces.ECPublicKey;
import java.security.spec.ECFieldFp;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.ECParameterSpec;
import java.security.spec.ECPoint;
import java.security.spec.ECPublicKeySpec;
import java.util.Arrays;

/** The public keys of P-256, and the forms in which the protocol writes them. */
public final class P256 {
    static final ECParameterSpec CURVE = curve();
    static final BigInteger ORDER = CURVE.getOrder();
    private static final BigInteger PRIME = ((ECFieldFp) CURVE.getCurve().getField()).getP();

    private P256() {}

    /** Returns the JWK, with its members in the order that RFC 7638 hashes. */
    public static Json jwk(ECPublicKey key) {
        return new Json()
            .put("crv", "P-256")
            .put("kty", "EC")
            .put("x", Base64Url.encode(fixed(key.getW().getAffineX(), 32)))
            .put("y", Base64Url.encode(fixed(key.getW().getAffineY(), 32)));
    }

    /** Returns the thumbprint of RFC 7638, by which people compare keys. */
    public static String thumbprint(ECPublicKey key) {
        return Base64Url.encode(sha256(jwk(key).bytes()));
    }

    /** Reads a JWK. A point that is not on the curve is refused, because it could leak a key. */
    static ECPublicKey publicKey(Json jwk) throws GeneralSecurityException {
        byte[] x = jwk == null ? null : Base64Url.decode(jwk.text("x"), 32);
        byte[] y = jwk == null ? null : Base64Url.decode(jwk.text("y"), 32);
        if (x == null || y == null || !"EC".equals(jwk.text("kty")) || !"P-256".equals(jwk.text("crv"))) {
            throw new GeneralSecurityException("not a JWK of P-256");
        }
        return publicKey(new BigInteger(1, x), new BigInteger(1, y));
    }

    static ECPublicKey publicKey(BigInteger x, BigInteger y) throws GeneralSecurityException {
        if (x.compareTo(PRIME) >= 0 || y.compareTo(PRIME) >= 0
            || !y.multiply(y).mod(PRIME).equals(ySquared(x))) {
            throw new GeneralSecurityException("not a point of P-256");
        }
        ECPublicKeySpec spec = new ECPublicKeySpec(new ECPoint(x, y), CURVE);
        return (ECPublicKey) KeyFactory.getInstance("EC").generatePublic(spec);
    }

    /** Returns one of the two y of a point; the other one is the prime minus it. */
    static BigInteger y(BigInteger x) {
        // The prime is 3 modulo 4, so this power is a square root.
        return ySquared(x).modPow(PRIME.add(BigInteger.ONE).shiftRight(2), PRIME);
    }

    static BigInteger negated(BigInteger y) {
        return PRIME.subtract(y);
    }

    private static BigInteger ySquared(BigInteger x) {
        BigInteger a = CURVE.getCurve().getA();
        return x.pow(3).add(a.multiply(x)).add(CURVE.getCurve().getB()).mod(PRIME);
    }

    /** Returns the number in exactly so many bytes, the highest first. */
    static byte[] fixed(BigInteger number, int count) {
        byte[] bytes = number.toByteArray();
        byte[] fixed = new byte[count];
        int used = Math.min(count, bytes.length);
        System.arraycopy(bytes, bytes.length - used, fixed, count - used, used);
        return fixed;
    }

    static byte[] sha256(byte[] bytes) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(bytes);
        } catch (GeneralSecurityException missing) {
            throw new AssertionError(missing);
        }
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static ECParameterSpec curve() {
        try {
            AlgorithmParameters parameters = AlgorithmParameters.getInstance("EC");
            parameters.init(new ECGenParameterSpec("secp256r1"));
            return parameters.getParameterSpec(ECParameterSpec.class);
        } catch (GeneralSecurityException missing) {
            throw new AssertionError(missing);
        }
    }

    static byte[] joined(byte[]... parts) {
        int count = 0;
        for (byte[] part : parts) {
            count += part.length;
        }
        byte[] joined = new byte[count];
        int position = 0;
        for (byte[] part : parts) {
            System.arraycopy(part, 0, joined, position, part.length);
            position += part.length;
        }
        return joined;
    }

    static byte[] prefix(byte[] bytes, int count) {
        return Arrays.copyOf(bytes, count);
    }
}
