package twoefay.phone;

import java.security.GeneralSecurityException;
import java.security.cert.X509Certificate;
import java.security.interfaces.ECPublicKey;
import java.util.List;

/**
 * The private keys of the phone: in the Android Keystore (see README.md), or in memory for tests.
 *
 * <p>Each enrolment has a key that signs and another one for key agreement, under the name of the
 * enrolment. They are never exported.
 */
public interface Keys {
    /** The key that signs all statements of an enrolment. */
    interface SigningKey {
        ECPublicKey publicKey();

        /**
         * Returns an ECDSA signature with SHA-256, as r and s of 32 bytes each ({@link Der#raw}).
         * It may wait until the person has passed the check of the platform.
         */
        byte[] sign(byte[] message) throws GeneralSecurityException;

        /** The attestation of the platform, the key's own certificate first; empty without one. */
        List<X509Certificate> attestation() throws GeneralSecurityException;
    }

    /** The key to which the relay seals the secret of codes. It signs nothing. */
    interface AgreementKey {
        ECPublicKey publicKey();

        /** Returns the shared secret of ECDH, the 32 bytes of the coordinate x. */
        byte[] agree(ECPublicKey other) throws GeneralSecurityException;
    }

    /**
     * Creates and stores the signing key of a new enrolment.
     *
     * @param challenge the challenge of the attestation (docs/phones/attestation.md)
     */
    SigningKey createSigningKey(String name, byte[] challenge) throws GeneralSecurityException;

    /** Creates and stores the agreement key; null if the platform has none (Android before 12). */
    AgreementKey createAgreementKey(String name) throws GeneralSecurityException;

    SigningKey signingKey(String name) throws GeneralSecurityException;

    AgreementKey agreementKey(String name) throws GeneralSecurityException;

    /** Deletes both keys. It is no error if they do not exist. */
    void delete(String name) throws GeneralSecurityException;
}
