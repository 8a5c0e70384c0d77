package twoefay.phone;

import java.math.BigInteger;
import java.security.SignatureException;
import java.util.Arrays;

/**
 * The two forms of an ECDSA signature.
 *
 * <p>{@code java.security.Signature} uses ASN.1 DER: a sequence of two integers. JWS uses r and s
 * behind each other, with a fixed number of bytes (RFC 7518, section 3.4). The relay refuses DER.
 */
public final class Der {
    private Der() {}

    /** Returns r and s with {@code size} bytes each; 32 for P-256. */
    public static byte[] raw(byte[] der, int size) throws SignatureException {
        int[] position = {0};
        int end = header(der, position, 0x30);
        if (end != der.length) {
            throw new SignatureException("the signature has bytes behind its end");
        }
        byte[] r = integer(der, position, size);
        byte[] s = integer(der, position, size);
        if (position[0] != end) {
            throw new SignatureException("the signature has more than two integers");
        }
        return P256.joined(r, s);
    }

    /** Returns the sequence of the two integers. */
    public static byte[] sequence(byte[] raw) {
        byte[] r = integer(Arrays.copyOfRange(raw, 0, raw.length / 2));
        byte[] s = integer(Arrays.copyOfRange(raw, raw.length / 2, raw.length));
        // Two integers of P-256 or P-384 have at most 102 bytes, so each length is one byte.
        return P256.joined(new byte[] {0x30, (byte) (r.length + s.length)}, r, s);
    }

    private static byte[] integer(byte[] bytes) {
        byte[] shortest = new BigInteger(1, bytes).toByteArray();
        return P256.joined(new byte[] {0x02, (byte) shortest.length}, shortest);
    }

    private static byte[] integer(byte[] der, int[] position, int size) throws SignatureException {
        int end = header(der, position, 0x02);
        BigInteger value = new BigInteger(Arrays.copyOfRange(der, position[0], end));
        position[0] = end;
        if (value.signum() < 0 || value.bitLength() > 8 * size) {
            throw new SignatureException("an integer of the signature is out of range");
        }
        return P256.fixed(value, size);
    }

    /** Reads a tag and a length of one byte, and returns the end of the content. */
    private static int header(byte[] der, int[] position, int tag) throws SignatureException {
        int start = position[0];
        if (start + 3 > der.length || der[start] != tag || der[start + 1] <= 0
            || start + 2 + der[start + 1] > der.length) {
            throw new SignatureException("the signature is no DER");
        }
        position[0] = start + 2;
        return start + 2 + der[start + 1];
    }
}
