package twoefay.phone;

import java.io.IOException;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;

/** The parts of the app that the protocol needs: replace them by those of Android. */
public final class App {
    public final Keys keys;
    public final Enrolment.Store store;
    public Transport.Maker transports = SocketTransport::new;
    public Clock clock = new Clock.OfSystem();
    /** {@code android}, or {@code web} if the app gets its pushes through UnifiedPush. */
    public String platform = "android";
    /** The languages of the person for {@code Accept-Language}, such as {@code de-AT, de;q=0.8}. */
    public String languages = "en";
    final SecureRandom random = new SecureRandom();

    public App(Keys keys, Enrolment.Store store) {
        this.keys = keys;
        this.store = store;
    }

    /** Returns random bits in base64url, which nobody can guess and which never repeat. */
    String nonce() {
        byte[] bytes = new byte[16];
        random.nextBytes(bytes);
        return Base64Url.encode(bytes);
    }

    void save(Enrolment enrolment) throws Failure {
        try {
            store.save(enrolment);
        } catch (IOException full) {
            throw Failure.unable(full);
        }
    }

    /** Deletes an enrolment with its keys. */
    void forget(Enrolment enrolment) throws Failure {
        try {
            keys.delete(enrolment.name);
            store.remove(enrolment);
        } catch (IOException | GeneralSecurityException refused) {
            throw Failure.unable(refused);
        }
    }
}
