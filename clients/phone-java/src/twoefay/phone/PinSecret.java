package twoefay.phone;

import java.math.BigInteger;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.SecureRandom;
import java.security.Signature;
import java.security.interfaces.ECPublicKey;
import java.security.spec.ECPrivateKeySpec;
import java.util.Arrays;
import javax.crypto.KeyAgreement;

/**
 * The secret from which the keys of the PIN and PUK are derived.
 *
 * <p>The phone stores these 256 bits and nothing that depends on the PIN: no key, no digest, no
 * signature. So nothing on the phone shows whether a PIN is right. Only the relay notices a wrong
 * one, and it counts.
 */
public final class PinSecret {
    /** The key that digits give. Keep it no longer than the signature needs. */
    static final class Key {
        final ECPublicKey publicKey;
        private final PrivateKey privateKey;

        private Key(BigInteger scalar) throws GeneralSecurityException {
            ECPrivateKeySpec spec = new ECPrivateKeySpec(scalar, P256.CURVE);
            privateKey = KeyFactory.getInstance("EC").generatePrivate(spec);
            publicKey = publicKeyOf(privateKey);
        }

        /** Signs the first two parts of a JWS. */
        String signature(String compact) throws GeneralSecurityException {
            return Base64Url.encode(Der.raw(der(privateKey, Jws.signedPart(compact)), 32));
        }
    }

    final byte[] bytes;

    PinSecret(byte[] bytes) {
        this.bytes = bytes.clone();
    }

    static PinSecret random(SecureRandom random) {
        byte[] bytes = new byte[32];
        random.nextBytes(bytes);
        return new PinSecret(bytes);
    }

    Key pin(String digits) throws GeneralSecurityException {
        return key(digits, "twoefay-pin");
    }

    Key puk(String digits) throws GeneralSecurityException {
        return key(digits, "twoefay-puk");
    }

    private Key key(String digits, String info) throws GeneralSecurityException {
        byte[] stretched = Scrypt.derive(P256.utf8(digits), bytes, 32_768, 8, 32);
        byte[] material = Scrypt.hkdf(stretched, P256.utf8(info), 40);
        BigInteger most = P256.ORDER.subtract(BigInteger.ONE);
        BigInteger scalar = new BigInteger(1, material).mod(most).add(BigInteger.ONE);
        Arrays.fill(stretched, (byte) 0);
        Arrays.fill(material, (byte) 0);
        return new Key(scalar);
    }

    /**
     * Returns the public key. The Java library has no call for it. But ECDH with the generator of
     * the curve gives its x, and of the two y the right one verifies a signature. So the platform
     * does the arithmetic with the secret, in constant time.
     */
    private static ECPublicKey publicKeyOf(PrivateKey key) throws GeneralSecurityException {
        KeyAgreement agreement = KeyAgreement.getInstance("ECDH");
        agreement.init(key);
        BigInteger generatorX = P256.CURVE.getGenerator().getAffineX();
        BigInteger generatorY = P256.CURVE.getGenerator().getAffineY();
        agreement.doPhase(P256.publicKey(generatorX, generatorY), true);
        BigInteger x = new BigInteger(1, agreement.generateSecret());
        ECPublicKey candidate = P256.publicKey(x, P256.y(x));
        Signature check = Signature.getInstance("SHA256withECDSA");
        check.initVerify(candidate);
        return check.verify(der(key, new byte[0]))
            ? candidate : P256.publicKey(x, P256.negated(P256.y(x)));
    }

    private static byte[] der(PrivateKey key, byte[] message) throws GeneralSecurityException {
        Signature signature = Signature.getInstance("SHA256withECDSA");
        signature.initSign(key);
        signature.update(message);
        return signature.sign();
    }

    public static boolean isPin(String digits) {
        return digits.matches("[0-9]{4,12}");
    }

    public static boolean isPuk(String digits) {
        return digits.matches("[0-9]{12}");
    }

    /** Returns a new PUK: show it once, and never store it. */
    static String newPuk(SecureRandom random) {
        StringBuilder digits = new StringBuilder();
        while (digits.length() < 12) {
            digits.append(random.nextInt(10));
        }
        return digits.toString();
    }
}
