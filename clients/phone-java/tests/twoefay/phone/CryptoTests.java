package twoefay.phone;

import java.nio.charset.StandardCharsets;
import java.security.KeyPair;
import java.security.Signature;
import java.security.SignatureException;
import java.security.interfaces.ECPublicKey;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import twoefay.phone.Tests.Test;

/** Vectors of the RFCs, and the conversion of signatures. */
final class CryptoTests {
    private CryptoTests() {}

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    /** RFC 7914, section 12: those with p = 1. */
    @Test
    static void scryptHasTheVectorsOfTheRfc() throws Exception {
        Check.equal("77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442"
            + "fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906",
            Check.hex(Scrypt.derive(new byte[0], new byte[0], 16, 1, 64)));
        Check.equal("7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
            + "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887",
            Check.hex(Scrypt.derive(ascii("pleaseletmein"), ascii("SodiumChloride"), 16_384, 8, 64)));
    }

    /** RFC 5869, A.3: without salt and info. */
    @Test
    static void hkdfHasTheVectorOfTheRfc() throws Exception {
        Check.equal("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
            Check.hex(Scrypt.hkdf(Check.hex("0b".repeat(22)), new byte[0], 42)));
    }

    /** RFC 6238, appendix B. */
    @Test
    static void totpHasTheVectorsOfTheRfc() throws Exception {
        String[][] vectors = {
            {"sha1", "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", "94287082", "07081804", "65353130"},
            {"sha256", "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZA", "46119246", "68084774", "77737706"},
            {"sha512", "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJ"
                + "QGEZDGNA", "90693936", "25091201", "47863826"},
        };
        for (String[] vector : vectors) {
            Totp totp = new Totp(new Json().put("v", 1).put("factor", "f").put("secret", vector[1])
                .put("algorithm", vector[0]).put("digits", 8).put("period", 30));
            Check.equal(vector[2], totp.code(59_000));
            Check.equal(vector[3], totp.code(1_111_111_109_000L));
            Check.equal(vector[4], totp.code(20_000_000_000_000L));
            Check.equal(1, totp.secondsLeft(59_000));
            Check.equal(30, totp.secondsLeft(60_000));
        }
        Json good = new Json().put("v", 1).put("factor", "f").put("secret", "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ")
            .put("algorithm", "sha1").put("digits", 6).put("period", 30);
        for (Object[] change : new Object[][] {
            {"v", 2}, {"secret", "GEZDGNBV"}, {"secret", "gezdgnbvgy3tqojqgezdgnbvgy3tqojq"}, {"algorithm", "md5"},
            {"digits", 5}, {"digits", 9}, {"period", 0}, {"factor", null},
        }) {
            Json bad = Json.read(good.toString()).put((String) change[0], change[1]);
            Check.fails(Json.Malformed.class, () -> new Totp(bad));
        }
    }

    /** RFC 7518, appendix C: the agreement, with another algorithm in the derivation than here. */
    @Test
    static void agreementHasTheVectorOfTheRfc() throws Exception {
        ECPublicKey alice = P256.publicKey(Json.read("{\"kty\":\"EC\",\"crv\":\"P-256\","
            + "\"x\":\"gI0GAILBdu7T53akrFmMyGcsF3n5dO7MmwNBHKW5SV0\",\"y\":\"SLW_xSffzlPWrHEVI30DHM_4egVwt3NQqeUD7nMFpps\"}"));
        ECPublicKey bob = P256.publicKey(Json.read("{\"kty\":\"EC\",\"crv\":\"P-256\","
            + "\"x\":\"weNJy2HscCSM6AEDTDg04biOvhFhyyWvOHQfeF_PxMQ\",\"y\":\"e8lnCO-AlStT-NJVX-crhB7QRYhiix03illJOVAOyck\"}"));
        byte[] ours = SoftwareKeys.agreement(bob, SoftwareKeys.privateKey("VEmDZpDXXK8p8N0Cndsxs924q6nS1RXFASRl6BfUqdw")).agree(alice);
        byte[] theirs = SoftwareKeys.agreement(alice, SoftwareKeys.privateKey("0_NxaRPUMQoAJt50Gz8YiTr8gRTwyEaCumd-MToTmIo")).agree(bob);
        Check.equal("9e56d91d817135d372834283bf84269cfb316ea3da806a48f6daa7798cfe90c4", Check.hex(ours));
        Check.equal(Check.hex(ours), Check.hex(theirs));
    }

    private static String sealed(KeyPair to, Json plaintext, Json more) throws Exception {
        KeyPair ephemeral = SoftwareKeys.generate();
        Json header = new Json().put("alg", "ECDH-ES").put("enc", "A256GCM")
            .put("epk", P256.jwk((ECPublicKey) ephemeral.getPublic()))
            .put("apu", Base64Url.encode(ascii("https://r#shop"))).put("apv", Base64Url.encode(ascii("d1.f1")))
            .put("typ", "twoefay-secret+jwe").put("aud", "https://r#shop").put("kid", "d1").put("factor", "f1");
        for (String name : more.names()) {
            header.put(name, more.text(name) == null ? more.object(name) : more.text(name));
        }
        String first = Base64Url.encode(header.bytes());
        byte[] shared = SoftwareKeys.agreement(null, ephemeral.getPrivate()).agree((ECPublicKey) to.getPublic());
        byte[] key = Jwe.derive(shared, ascii("https://r#shop"), ascii("d1.f1"));
        Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
        cipher.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(key, "AES"), new GCMParameterSpec(128, new byte[12]));
        cipher.updateAAD(ascii(first));
        byte[] out = cipher.doFinal(plaintext.bytes());
        byte[] text = java.util.Arrays.copyOf(out, out.length - 16);
        byte[] tag = java.util.Arrays.copyOfRange(out, out.length - 16, out.length);
        return first + ".." + Base64Url.encode(new byte[12]) + "." + Base64Url.encode(text) + "." + Base64Url.encode(tag);
    }

    @Test
    static void secretForAnotherPhoneOrPurposeIsRefused() throws Exception {
        KeyPair pair = SoftwareKeys.generate();
        Keys.AgreementKey key = SoftwareKeys.agreement((ECPublicKey) pair.getPublic(), pair.getPrivate());
        Enrolment enrolment = new Enrolment(new Json().put("name", "e").put("relay", "https://r").put("website", "shop")
            .put("token", "t").put("pins", java.util.List.of()).put("device", "d1"));
        Json plaintext = new Json().put("v", 1).put("secret", "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ")
            .put("algorithm", "sha1").put("digits", 8).put("period", 30);
        Totp opened = Totp.open(sealed(pair, plaintext, new Json()), "f1", enrolment, key);
        Check.equal("94287082", opened.code(59_000));
        for (String[] change : new String[][] {
            {"typ", "other"}, {"aud", "https://r#bank"}, {"kid", "d2"}, {"factor", "f2"}, {"alg", "dir"}, {"enc", "A128GCM"},
            {"apu", "AAAA"}, {"apv", "AAAA"}, {"zip", "DEF"}, {"crit", "x"},
        }) {
            String other = sealed(pair, plaintext, new Json().put(change[0], change[1]));
            Check.fails(Json.Malformed.class, () -> Totp.open(other, "f1", enrolment, key));
        }
        String right = sealed(pair, plaintext, new Json());
        Check.fails(Exception.class, () -> Totp.open(right, "f2", enrolment, key));
        Check.fails(Exception.class, () -> Totp.open(right.replaceFirst("\\.\\.A", "..B"), "f1", enrolment, key));
        Check.fails(Exception.class, () -> Totp.open(right + ".", "f1", enrolment, key));
        KeyPair stranger = SoftwareKeys.generate();
        String foreign = sealed(stranger, plaintext, new Json());
        Check.fails(Exception.class, () -> Totp.open(foreign, "f1", enrolment, key));
        // A point that is not on the curve would leak the key bit by bit.
        Json off = new Json().put("crv", "P-256").put("kty", "EC").put("x", Base64Url.encode(new byte[32]))
            .put("y", Base64Url.encode(new byte[32]));
        Check.equal("not a point of P-256",
            Check.fails(java.security.GeneralSecurityException.class, () -> P256.publicKey(off)).getMessage());
        String invalid = sealed(pair, plaintext, new Json().put("epk", off));
        Check.fails(java.security.GeneralSecurityException.class, () -> Totp.open(invalid, "f1", enrolment, key));
    }

    @Test
    static void signatureKeepsItsNumbers() throws Exception {
        KeyPair pair = SoftwareKeys.generate();
        Signature signer = Signature.getInstance("SHA256withECDSA");
        // In a hundred signatures, integers with leading zeros and with a sign byte occur.
        for (int count = 0; count < 100; count++) {
            signer.initSign(pair.getPrivate());
            signer.update((byte) count);
            byte[] der = signer.sign();
            byte[] raw = Der.raw(der, 32);
            Check.equal(64, raw.length);
            Check.equal(Check.hex(der), Check.hex(Der.sequence(raw)));
        }
        byte[] small = Check.hex("3006020101020102");
        Check.equal("00".repeat(31) + "01" + "00".repeat(31) + "02", Check.hex(Der.raw(small, 32)));
        Check.equal(Check.hex(small), Check.hex(Der.sequence(Der.raw(small, 32))));
    }

    @Test
    static void malformedSignatureIsRefused() {
        for (String der : new String[] {
            "", "30", "3000", "3006020101020101ff", "3106020101020101", "3006030101020101", "30060201010202010100",
            "3003020101", "3006020181020101", "3026" + "0221" + "01" + "00".repeat(32) + "020101", "308106020101020101",
            "3009020101020101020101",
        }) {
            Check.fails(SignatureException.class, () -> Der.raw(Check.hex(der), 32));
        }
    }

    /** The header cannot choose another algorithm than that of the key. */
    @Test
    static void jwsIsVerifiedByItsKeyAlone() throws Exception {
        KeyPair pair = SoftwareKeys.generate();
        ECPublicKey key = (ECPublicKey) pair.getPublic();
        Keys.SigningKey signer = SoftwareKeys.signing(key, pair.getPrivate(), java.util.List.of());
        String right = Jws.sign("t", "kid", "d", new Json().put("a", 1), signer);
        Check.that(new Jws(right).isSignedBy(key), right);
        String[] parts = right.split("\\.");
        for (String header : new String[] {
            "{\"alg\":\"none\",\"typ\":\"t\"}", "{\"alg\":\"HS256\",\"typ\":\"t\"}", "{\"alg\":\"ES384\",\"typ\":\"t\"}",
        }) {
            String head = Base64Url.encode(ascii(header));
            byte[] signature = signer.sign(ascii(head + "." + parts[1]));
            Check.that(!new Jws(head + "." + parts[1] + "." + Base64Url.encode(signature)).isSignedBy(key), header);
        }
        Check.that(!new Jws(parts[0] + "." + parts[1] + ".").isSignedBy(key), "no signature");
        Check.that(!new Jws(parts[0] + ".e30." + parts[2]).isSignedBy(key), "other claims");
        Check.that(!new Jws(right).isSignedBy((ECPublicKey) SoftwareKeys.generate().getPublic()), "another key");
        for (String text : new String[] {"", "a.b", right + ".", right + "=", parts[0] + "." + parts[1], "e30.e30.e30.e30"}) {
            Check.fails(Json.Malformed.class, () -> new Jws(text));
        }
        String critical = Base64Url.encode(ascii("{\"alg\":\"ES256\",\"crit\":[\"x\"]}"));
        Check.fails(Json.Malformed.class, () -> new Jws(critical + "." + parts[1] + "." + parts[2]));
    }
}
