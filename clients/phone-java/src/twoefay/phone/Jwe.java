package twoefay.phone;

import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.interfaces.ECPublicKey;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * Opens a compact JWE (RFC 7516) with ECDH-ES in direct agreement and A256GCM (RFC 7518).
 *
 * <p>The names of both parties are part of the derived key. The caller computes them: a JWE for
 * another phone or purpose then cannot be opened, whatever its header says.
 */
final class Jwe {
    final Json header;
    final byte[] plaintext;

    private Jwe(Json header, byte[] plaintext) {
        this.header = header;
        this.plaintext = plaintext;
    }

    static Jwe open(String compact, Keys.AgreementKey key, String sender, String recipient)
        throws GeneralSecurityException, Json.Malformed {
        String[] parts = compact.length() > 16_384 ? new String[0] : compact.split("\\.", -1);
        if (parts.length != 5 || !parts[1].isEmpty()) {
            throw new Json.Malformed("it is no compact JWE with direct agreement");
        }
        byte[] head = Base64Url.decode(parts[0]);
        byte[] nonce = Base64Url.decode(parts[2], 12);
        byte[] ciphertext = Base64Url.decode(parts[3]);
        byte[] tag = Base64Url.decode(parts[4], 16);
        if (head == null || nonce == null || ciphertext == null || tag == null) {
            throw new Json.Malformed("a part of the JWE is not base64url");
        }
        Json header = Json.read(head);
        byte[] apu = P256.utf8(sender);
        byte[] apv = P256.utf8(recipient);
        if (!"ECDH-ES".equals(header.text("alg")) || !"A256GCM".equals(header.text("enc"))
            || header.names().contains("crit") || header.names().contains("zip")
            || !Base64Url.encode(apu).equals(header.text("apu"))
            || !Base64Url.encode(apv).equals(header.text("apv"))) {
            throw new Json.Malformed("the JWE has another algorithm or other parties");
        }
        ECPublicKey ephemeral = P256.publicKey(header.object("epk"));
        byte[] derived = derive(key.agree(ephemeral), apu, apv);
        Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
        cipher.init(
            Cipher.DECRYPT_MODE, new SecretKeySpec(derived, "AES"), new GCMParameterSpec(128, nonce));
        cipher.updateAAD(P256.utf8(parts[0]));
        return new Jwe(header, cipher.doFinal(P256.joined(ciphertext, tag)));
    }

    /** Derives the key as RFC 7518, section 4.6.2, says: one round of the Concat KDF is enough. */
    static byte[] derive(byte[] secret, byte[] apu, byte[] apv) {
        byte[] algorithm = P256.utf8("A256GCM");
        return P256.sha256(P256.joined(
            number(1), secret, number(algorithm.length), algorithm, number(apu.length), apu,
            number(apv.length), apv, number(256)));
    }

    private static byte[] number(int number) {
        return ByteBuffer.allocate(4).putInt(number).array();
    }
}
