package twoefay.phone;

import java.math.BigInteger;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.cert.X509Certificate;
import java.security.interfaces.ECPublicKey;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.ECPrivateKeySpec;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.crypto.KeyAgreement;

/** Keys in memory, which anybody who can read it can copy: for tests only. */
final class SoftwareKeys implements Keys {
    private final Map<String, SigningKey> signing = new HashMap<>();
    private final Map<String, AgreementKey> agreement = new HashMap<>();
    byte[] challenge;
    /** The attestation that the next key gets. */
    List<X509Certificate> attestation = new ArrayList<>();
    boolean hasAgreement = true;
    /** Whether no second key can be made. */
    boolean fails;

    int count() {
        return signing.size() + agreement.size();
    }

    @Override
    public SigningKey createSigningKey(String name, byte[] challenge) throws GeneralSecurityException {
        this.challenge = challenge;
        KeyPair pair = generate();
        signing.put(name, signing((ECPublicKey) pair.getPublic(), pair.getPrivate(), attestation));
        return signing.get(name);
    }

    @Override
    public AgreementKey createAgreementKey(String name) throws GeneralSecurityException {
        if (fails) {
            throw new GeneralSecurityException("no more keys");
        }
        if (!hasAgreement) {
            return null;
        }
        KeyPair pair = generate();
        agreement.put(name, agreement((ECPublicKey) pair.getPublic(), pair.getPrivate()));
        return agreement.get(name);
    }

    @Override
    public SigningKey signingKey(String name) throws GeneralSecurityException {
        if (!signing.containsKey(name)) {
            throw new GeneralSecurityException("there is no such key");
        }
        return signing.get(name);
    }

    @Override
    public AgreementKey agreementKey(String name) {
        return agreement.get(name);
    }

    @Override
    public void delete(String name) {
        signing.remove(name);
        agreement.remove(name);
    }

    static KeyPair generate() throws GeneralSecurityException {
        KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
        generator.initialize(new ECGenParameterSpec("secp256r1"));
        return generator.generateKeyPair();
    }

    static PrivateKey privateKey(String d) throws GeneralSecurityException {
        BigInteger scalar = new BigInteger(1, Base64Url.decode(d));
        return KeyFactory.getInstance("EC").generatePrivate(new ECPrivateKeySpec(scalar, P256.CURVE));
    }

    static SigningKey signing(ECPublicKey publicKey, PrivateKey key, List<X509Certificate> attestation) {
        return new SigningKey() {
            @Override
            public ECPublicKey publicKey() {
                return publicKey;
            }

            @Override
            public byte[] sign(byte[] message) throws GeneralSecurityException {
                Signature signature = Signature.getInstance("SHA256withECDSA");
                signature.initSign(key);
                signature.update(message);
                return Der.raw(signature.sign(), 32);
            }

            @Override
            public List<X509Certificate> attestation() {
                return attestation;
            }
        };
    }

    static AgreementKey agreement(ECPublicKey publicKey, PrivateKey key) {
        return new AgreementKey() {
            @Override
            public ECPublicKey publicKey() {
                return publicKey;
            }

            @Override
            public byte[] agree(ECPublicKey other) throws GeneralSecurityException {
                KeyAgreement agreement = KeyAgreement.getInstance("ECDH");
                agreement.init(key);
                agreement.doPhase(other, true);
                return agreement.generateSecret();
            }
        };
    }
}
