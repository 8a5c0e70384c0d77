package twoefay.phone;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/** A pending challenge that the phone may show to the person. */
public final class Challenge {
    /** A challenge that this phone must not show or answer. */
    public static final class Refused {
        /** The id; null if it cannot be read. */
        public final String id;
        public final String reason;

        Refused(String id, String reason) {
            this.id = id;
            this.reason = reason;
        }
    }

    /** The demands that the phone must meet to approve. Show those that it does not meet. */
    public static final class Demands {
        /** Such as {@code required}; null if there is no such demand, as with the others. */
        public final String attestation;
        public final String osVersion;
        public final String appVersion;
        public final Long patchLevel;
        public final boolean verifiedBoot;
        public final boolean screenLock;
        /** The age of the user verification in seconds that is accepted. */
        public final Long mostVerificationAge;
        /** {@code sign}, {@code set} or {@code locked}. */
        public final String pin;
        /** Whether the website demands more than a PIN and a recent user verification. */
        final boolean asksPosture;
        /** The demands that only a new enrolment can meet. */
        public final List<String> unmet = new ArrayList<>();

        Demands(Json object) {
            attestation = object.text("attestation");
            osVersion = object.text("os_version");
            appVersion = object.text("app_version");
            patchLevel = object.integer("patch_level");
            verifiedBoot = object.isTrue("verified_boot");
            screenLock = object.isTrue("screen_lock");
            mostVerificationAge = object.integer("max_uv_age");
            pin = object.text("pin");
            asksPosture = object.names().stream().anyMatch(name -> !name.equals("pin") && !name.equals("max_uv_age"));
            for (Object each : object.list("unmet") == null ? new ArrayList<>() : object.list("unmet")) {
                unmet.add(Text.visible(String.valueOf(each), 64));
            }
        }
    }

    public final String id;
    final String nonce;
    public final Context context;
    /** The time left when the relay answered. The phone's own clock may be wrong. */
    public final Duration timeLeft;
    /** Whether the website wants to know the coarse place of the phone. */
    public final boolean asksPlace;
    /** Null if there are none. */
    public final Demands demands;

    /**
     * Reads an entry of {@code /pending}.
     *
     * @param now the relay's time, from the same answer
     */
    Challenge(Json entry, String website, Instant now) throws Json.Malformed {
        id = entry.text("challenge");
        nonce = entry.text("nonce");
        byte[] bytes = Base64Url.decode(entry.text("context"));
        if (!Text.isId(id) || nonce == null || bytes == null) {
            throw new Json.Malformed("challenge, nonce or context is missing");
        }
        context = new Context(bytes);
        if (!context.website.equals(website)) {
            throw new Json.Malformed("it is from a website to which this phone is not bound");
        }
        timeLeft = Duration.between(now, Context.time(entry, "expires_at"));
        asksPlace = entry.isTrue("asks_place");
        demands = entry.object("demands") == null ? null : new Demands(entry.object("demands"));
    }

    boolean demandsPin() {
        return demands != null && "sign".equals(demands.pin);
    }
}
