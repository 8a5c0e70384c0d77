package twoefay.phone;

import java.time.DateTimeException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/**
 * The content of a challenge, read from the exact bytes that the phone signs.
 *
 * <p>The person sees everything that the signature covers, except {@link #request}. So this class
 * refuses a context that cannot be shown faithfully: show no member that was left out here, and
 * leave none out that is here.
 */
public final class Context {
    /** A labelled line that the website added. */
    public static final class Detail {
        public final String label;
        public final String value;

        Detail(String label, String value) {
            this.label = label;
            this.value = value;
        }
    }

    /** The bytes whose SHA-256 is signed. Never serialise them again. */
    final byte[] bytes;
    public final String website;
    public final String displayName;
    public final String username;
    /** This member and all below may be null. */
    public final String service;
    public final String action;
    public final String ip;
    public final String place;
    public final String userAgent;
    /** The phone to be bound, if {@link #action} is {@code enrol}. */
    public final String device;
    /** The nonce of the website, which is not shown. */
    final String request;
    public final List<Detail> details = new ArrayList<>();
    /** The number of digits that the person types; 0 for none. */
    public final int numberDigits;
    public final Instant createdAt;
    public final Instant expiresAt;

    Context(byte[] bytes) throws Json.Malformed {
        this.bytes = bytes.clone();
        Json object = Json.read(bytes);
        if (!Long.valueOf(1).equals(object.integer("v"))) {
            throw new Json.Malformed("its version is unknown: update the app");
        }
        website = needed(object, "website");
        displayName = needed(object, "display_name");
        username = needed(object, "username");
        service = text(object, "service");
        action = text(object, "action");
        ip = text(object, "ip");
        place = text(object, "place");
        userAgent = text(object, "user_agent");
        device = text(object, "device");
        request = text(object, "request");
        readDetails(object);
        Long digits = object.integer("number_digits");
        if (digits == null || digits < 0 || digits > 9) {
            throw new Json.Malformed("number_digits is missing");
        }
        numberDigits = digits.intValue();
        createdAt = time(object, "created_at");
        expiresAt = time(object, "expires_at");
    }

    private void readDetails(Json object) throws Json.Malformed {
        if (object.has("details") && object.list("details") == null) {
            throw new Json.Malformed("details is no list");
        }
        for (Object each : object.has("details") ? object.list("details") : new ArrayList<>()) {
            Json detail = Json.as(Json.class, each);
            if (detail == null) {
                throw new Json.Malformed("a detail is no object");
            }
            details.add(new Detail(needed(detail, "label"), needed(detail, "value")));
        }
    }

    private static String needed(Json object, String name) throws Json.Malformed {
        String text = text(object, name);
        if (text == null) {
            throw new Json.Malformed(name + " is missing");
        }
        return text;
    }

    private static String text(Json object, String name) throws Json.Malformed {
        String text = object.text(name);
        if (text == null && object.has(name)) {
            throw new Json.Malformed(name + " is no text");
        }
        if (text != null && !Text.isShowable(text)) {
            throw new Json.Malformed(name + " has a character that cannot be shown");
        }
        return text;
    }

    static Instant time(Json object, String name) throws Json.Malformed {
        String text = object.text(name);
        try {
            // RFC 3339 in UTC. Instant.parse also accepts other forms of ISO 8601.
            if (text != null && text.matches("\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,9})?Z")) {
                return Instant.parse(text);
            }
        } catch (DateTimeException noDate) {
            // It is refused below.
        }
        throw new Json.Malformed(name + " is no time");
    }
}
