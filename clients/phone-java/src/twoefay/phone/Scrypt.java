package twoefay.phone;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** scrypt (RFC 7914) and HKDF (RFC 5869) with SHA-256. The Java library has neither. */
final class Scrypt {
    private Scrypt() {}

    /** Derives with p = 1. It needs 128 · n · r bytes of memory: 32 MiB for n = 32768 and r = 8. */
    static byte[] derive(byte[] password, byte[] salt, int n, int r, int count)
        throws GeneralSecurityException {
        ByteBuffer bytes = ByteBuffer.wrap(stretch(password, salt, 128 * r)).order(ByteOrder.LITTLE_ENDIAN);
        int[] block = new int[32 * r];
        bytes.asIntBuffer().get(block);
        mix(block, n);
        bytes.asIntBuffer().put(block);
        return stretch(password, bytes.array(), count);
    }

    /** PBKDF2 with one iteration (RFC 8018), the only form that scrypt needs. */
    private static byte[] stretch(byte[] password, byte[] salt, int count) throws GeneralSecurityException {
        byte[] out = new byte[0];
        for (int index = 1; out.length < count; index++) {
            out = P256.joined(out, hmac(password, P256.joined(salt, number(index))));
        }
        return Arrays.copyOf(out, count);
    }

    /**
     * scryptROMix: fills a large table, and then reads it in an order that depends on the block.
     */
    private static void mix(int[] block, int n) {
        int[] table = new int[n * block.length];
        int[] scratch = new int[block.length];
        for (int index = 0; index < n; index++) {
            System.arraycopy(block, 0, table, index * block.length, block.length);
            mixBlock(block, scratch);
        }
        for (int index = 0; index < n; index++) {
            int from = (block[block.length - 16] & (n - 1)) * block.length;
            for (int word = 0; word < block.length; word++) {
                block[word] ^= table[from + word];
            }
            mixBlock(block, scratch);
        }
        Arrays.fill(table, 0);
    }

    /** scryptBlockMix: the even parts come first, then the odd ones. */
    private static void mixBlock(int[] block, int[] scratch) {
        int[] sum = Arrays.copyOfRange(block, block.length - 16, block.length);
        int parts = block.length / 16;
        for (int part = 0; part < parts; part++) {
            for (int word = 0; word < 16; word++) {
                sum[word] ^= block[16 * part + word];
            }
            salsa(sum);
            int to = part / 2 + (part % 2) * (parts / 2);
            System.arraycopy(sum, 0, scratch, 16 * to, 16);
        }
        System.arraycopy(scratch, 0, block, 0, block.length);
    }

    /** Salsa20/8. Each row names the words of a quarter round. */
    private static final int[][] QUARTERS = {
        {0, 4, 8, 12}, {5, 9, 13, 1}, {10, 14, 2, 6}, {15, 3, 7, 11},
        {0, 1, 2, 3}, {5, 6, 7, 4}, {10, 11, 8, 9}, {15, 12, 13, 14},
    };

    private static void salsa(int[] words) {
        int[] x = words.clone();
        for (int round = 0; round < 4; round++) {
            for (int[] q : QUARTERS) {
                x[q[1]] ^= Integer.rotateLeft(x[q[0]] + x[q[3]], 7);
                x[q[2]] ^= Integer.rotateLeft(x[q[1]] + x[q[0]], 9);
                x[q[3]] ^= Integer.rotateLeft(x[q[2]] + x[q[1]], 13);
                x[q[0]] ^= Integer.rotateLeft(x[q[3]] + x[q[2]], 18);
            }
        }
        for (int word = 0; word < 16; word++) {
            words[word] += x[word];
        }
    }

    /** HKDF without a salt. */
    static byte[] hkdf(byte[] secret, byte[] info, int count) throws GeneralSecurityException {
        byte[] key = hmac(new byte[32], secret);
        byte[] part = new byte[0];
        byte[] out = new byte[0];
        for (int index = 1; out.length < count; index++) {
            part = hmac(key, P256.joined(part, info, new byte[] {(byte) index}));
            out = P256.joined(out, part);
        }
        return Arrays.copyOf(out, count);
    }

    private static byte[] hmac(byte[] key, byte[] message) throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        // Java refuses an empty key. HMAC fills a short key with zeros, so one zero is the same
        // key.
        mac.init(new SecretKeySpec(key.length == 0 ? new byte[1] : key, "HmacSHA256"));
        return mac.doFinal(message);
    }

    private static byte[] number(int number) {
        return ByteBuffer.allocate(4).putInt(number).array();
    }
}
