package twoefay.phone;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * The data of one enrolment. Its keys are in {@link Keys}, under {@link #name}.
 *
 * <p>Some members are secrets: the activation code, {@code k}, the secret of the PIN and that of
 * codes. Store the text of {@link #json} encrypted under a key of the platform, and exclude it from
 * backups.
 */
public final class Enrolment {
    /** Stores enrolments. Each change is stored before the relay learns of it. */
    public interface Store {
        void save(Enrolment enrolment) throws IOException;

        void remove(Enrolment enrolment) throws IOException;
    }

    /** The name of the keys and of the entry in the store. */
    public final String name;
    public final Origin relay;
    public final String website;
    /** The opaque id of the user. */
    public final String token;
    /** The pins of the relay's authority: one, or two while it is replaced. */
    volatile List<String> pins = new ArrayList<>();
    /** The number of the last statement about pins that the phone took. */
    long pinsSequence;
    /** The activation code and the secret of the website; null as soon as the phone is bound. */
    String activationCode;
    byte[] websiteKey;
    /** The address of the phone at its push service; null if it polls. */
    String pushToken;
    /** The person's name for the phone; null without one. */
    String phoneName;
    /** The id of the phone at the relay; null until it is bound. */
    public volatile String device;
    /** The relay's clock minus the phone's clock, in milliseconds. */
    public volatile long clockOffset;
    /** The time of the last request for a secret of codes: the next one must be later. */
    long secretRequestedAt;
    PinSecret pinSecret;
    Totp codes;

    Enrolment(String name, Activation activation, String pushToken, String phoneName) {
        this.name = name;
        relay = activation.relay;
        website = activation.website;
        token = activation.token;
        pins.add(Base64Url.encode(activation.pin));
        activationCode = activation.code;
        websiteKey = activation.websiteKey;
        this.pushToken = pushToken;
        this.phoneName = phoneName;
    }

    /** Reads the stored form. */
    public Enrolment(Json stored) throws Json.Malformed {
        name = stored.text("name");
        relay = stored.text("relay") == null ? null : Origin.read(stored.text("relay"));
        website = stored.text("website");
        token = stored.text("token");
        if (name == null || relay == null || website == null || token == null || stored.list("pins") == null) {
            throw new Json.Malformed("a member of the enrolment is missing");
        }
        for (Object pin : stored.list("pins")) {
            pins.add(String.valueOf(pin));
        }
        pinsSequence = number(stored, "pins_seq");
        activationCode = stored.text("activation_code");
        websiteKey = Base64Url.decode(stored.text("k"));
        pushToken = stored.text("dev_token");
        phoneName = stored.text("phone_name");
        device = stored.text("device");
        clockOffset = number(stored, "clock_offset");
        secretRequestedAt = number(stored, "secret_requested_at");
        byte[] secret = Base64Url.decode(stored.text("pin_secret"), 32);
        pinSecret = secret == null ? null : new PinSecret(secret);
        codes = stored.object("codes") == null ? null : new Totp(stored.object("codes"));
    }

    private static long number(Json stored, String name) {
        Long number = stored.integer(name);
        return number == null ? 0 : number;
    }

    public Json json() {
        return new Json()
            .put("name", name)
            .put("relay", relay.text)
            .put("website", website)
            .put("token", token)
            .put("pins", new ArrayList<Object>(pins))
            .put("pins_seq", pinsSequence)
            .put("activation_code", activationCode)
            .put("k", websiteKey == null ? null : Base64Url.encode(websiteKey))
            .put("dev_token", pushToken)
            .put("phone_name", phoneName)
            .put("device", device)
            .put("clock_offset", clockOffset)
            .put("secret_requested_at", secretRequestedAt)
            .put("pin_secret", pinSecret == null ? null : Base64Url.encode(pinSecret.bytes))
            .put("codes", codes == null ? null : codes.stored);
    }

    /** The audience of everything that the phone signs: no other relay or website accepts it. */
    String audience() {
        return relay.text + "#" + website;
    }

    public boolean isBound() {
        return device != null;
    }
}
