package twoefay.phone;

import java.io.ByteArrayInputStream;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.interfaces.ECPublicKey;
import java.util.ArrayList;
import java.util.List;

/**
 * Binds a phone.
 *
 * <p>The enrolment and its keys are stored before the first request, and stay until it is certain
 * that the relay has not bound them: an answer may be lost. So an app that was killed goes on with
 * {@link #Enroller(App, Enrolment)}.
 */
public final class Enroller {
    /** The lifetime of an activation code, and of the wait for an approval. */
    private static final long CODE_LIFE_NANOS = 600_000_000_000L;
    private static final long PAUSE = 2_000;

    /** Shows the person what happens. */
    public interface Screen {
        /**
         * Another phone of the user has to approve: the person types the number there.
         *
         * @param number null if there is none
         * @param thumbprint the thumbprint of the key, which the other phone shows as {@code key}
         */
        void waits(String number, String thumbprint);

        /** The person writes the code down: it unbinds a lost phone. Do not store it. */
        void bound(String revocationCode);
    }

    private final App app;
    private final Enrolment enrolment;
    private final Keys.SigningKey key;
    private final Relay relay;
    private final Json body;
    private String verdict;

    /** Creates the keys of a new enrolment, and stores them. {@code null} leaves a member out. */
    public static Enroller begin(App app, Activation activation, String pushToken, String phoneName) throws Failure {
        Enrolment enrolment = new Enrolment(app.nonce(), activation, pushToken, phoneName);
        try {
            app.keys.createSigningKey(enrolment.name, attestationChallenge(enrolment));
            app.keys.createAgreementKey(enrolment.name);
            app.save(enrolment);
        } catch (GeneralSecurityException refused) {
            app.forget(enrolment);
            throw Failure.unable(refused);
        }
        return new Enroller(app, enrolment);
    }

    /** Goes on with an enrolment that was stored and is not bound. */
    public Enroller(App app, Enrolment enrolment) throws Failure {
        this.app = app;
        this.enrolment = enrolment;
        try {
            key = app.keys.signingKey(enrolment.name);
            relay = new Relay(app, enrolment, new Statements(enrolment, key));
            body = body();
        } catch (GeneralSecurityException noKey) {
            throw Failure.unable(noKey);
        }
    }

    private Json body() throws GeneralSecurityException {
        Statements statements = new Statements(enrolment, key);
        Keys.AgreementKey second = app.keys.agreementKey(enrolment.name);
        ECPublicKey agreement = second == null ? null : second.publicKey();
        List<Object> chain = new ArrayList<>();
        for (X509Certificate each : key.attestation()) {
            chain.add(Base64Url.encode(each.getEncoded()));
        }
        Json attestation = new Json().put("format", "android-key").put("chain", chain);
        return new Json()
            .put("id_token", enrolment.token)
            .put("dev_token", enrolment.pushToken)
            .put("activation_code", enrolment.activationCode)
            .put("proof", statements.proof(agreement, relay.seconds()))
            .put("binding", enrolment.websiteKey == null ? null : statements.binding(agreement))
            .put("attestation", chain.isEmpty() ? null : attestation)
            .put("name", enrolment.phoneName)
            .put("platform", app.platform);
    }

    /** The relay's verdict on the attestation; null if attestations do not count. */
    public String verdict() {
        return verdict;
    }

    public String thumbprint() {
        return P256.thumbprint(key.publicKey());
    }

    /**
     * Binds the phone, and repeats the attempt as long as the code counts.
     *
     * @return the bound phone; null if the code is wrong, used or expired, or nobody approved. The
     *     keys are deleted then, and the person needs a new activation.
     */
    public Phone run(Screen screen) throws Failure, InterruptedException {
        long start = app.clock.monotonicNanos();
        long pause = PAUSE;
        while (true) {
            boolean isTimeLeft = app.clock.monotonicNanos() - start < CODE_LIFE_NANOS;
            try {
                Phone phone = attempt(screen);
                if (phone != null || !isTimeLeft) {
                    return phone;
                }
                pause = PAUSE;
            } catch (Failure failure) {
                if (failure.status == 401) {
                    return boundBefore();
                }
                if (!failure.mayPass() || !isTimeLeft) {
                    throw failure;
                }
                pause = failure.retryAfter != null ? 1000 * failure.retryAfter : Math.min(2 * pause, 30_000);
            }
            app.clock.pause(pause);
        }
    }

    /** Makes one attempt. Returns null if another phone has to approve first. */
    public Phone attempt(Screen screen) throws Failure {
        Json answer = Answers.accepted(relay.send(new Transport.Request("POST", "/verify", body)));
        String login = String.valueOf(answer.text("login"));
        if (login.equals("wait")) {
            String number = answer.text("number");
            if (number != null && !number.matches("[0-9]{1,9}")) {
                throw Failure.unbelievable("the number is none");
            }
            screen.waits(number, thumbprint());
            return null;
        }
        if (!login.equals("verified")) {
            throw Failure.unbelievable("login is unknown");
        }
        String revocationCode = Answers.id(answer, "revocation_code");
        Json attestation = answer.object("attestation");
        verdict = attestation == null ? null : attestation.text("verdict");
        Phone phone = bound(answer);
        screen.bound(revocationCode);
        return phone;
    }

    /**
     * Finds out whether the relay has bound the key although its last answer was a refusal, because
     * an earlier answer was lost.
     *
     * @return null if the key belongs to no active phone. The keys are deleted then. In doubt it
     *     throws, and the keys stay: try again later.
     */
    public Phone boundBefore() throws Failure {
        Transport.Request request = new Transport.Request("POST", "/device", new Json().put("certificate", true));
        Transport.Answer answer = relay.prove(request);
        String reason = String.valueOf(answer.field("www-authenticate"));
        if (answer.status == 401 && reason.contains("invalid_dpop_proof")) {
            app.forget(enrolment);
            return null;
        }
        return bound(Answers.accepted(answer));
    }

    private Phone bound(Json answer) throws Failure {
        String device = Answers.id(answer, "device");
        checkCertificate(answer.text("certificate"));
        enrolment.device = device;
        enrolment.activationCode = null;
        enrolment.websiteKey = null;
        app.save(enrolment);
        relay.disconnect();
        return new Phone(app, enrolment);
    }

    /**
     * Checks that a certificate is for this key. It is not stored: this phone proves itself by
     * DPoP.
     */
    private void checkCertificate(String pem) throws Failure {
        if (pem == null) {
            return;
        }
        try {
            X509Certificate certificate = (X509Certificate) CertificateFactory.getInstance("X.509")
                .generateCertificate(new ByteArrayInputStream(P256.utf8(pem)));
            ECPublicKey certified = (ECPublicKey) certificate.getPublicKey();
            if (!P256.thumbprint(certified).equals(thumbprint())) {
                throw Failure.unbelievable("the certificate is for another key");
            }
        } catch (GeneralSecurityException | ClassCastException malformed) {
            throw Failure.unbelievable("the certificate is malformed");
        }
    }

    /** Deletes an enrolment that the relay has refused for good, such as with 403 or 409. */
    public void discard() throws Failure {
        app.forget(enrolment);
    }

    /** Returns the challenge of a key attestation of Android (docs/phones/attestation.md). */
    static byte[] attestationChallenge(Enrolment enrolment) {
        // The last field, the key, is empty: Android takes the challenge before the key exists.
        String[] fields = {
            "twoefay-attestation-v1", enrolment.audience(), enrolment.token, enrolment.activationCode, "",
        };
        byte[] input = new byte[0];
        for (String field : fields) {
            byte[] bytes = P256.utf8(field);
            input = P256.joined(input, ByteBuffer.allocate(4).putInt(bytes.length).array(), bytes);
        }
        return P256.sha256(input);
    }
}
