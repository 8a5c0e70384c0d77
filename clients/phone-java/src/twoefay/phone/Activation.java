package twoefay.phone;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/**
 * The activation: the content of the QR code or link that binds a phone.
 *
 * <p>Show the person {@link #website} and {@link #relay}, and continue when the person agrees.
 */
public final class Activation {
    /** The reason why a text is no activation. */
    public static final class Malformed extends Exception {
        Malformed(String reason) {
            super(reason);
        }
    }

    private static final String START = "twoefay://enrol?";
    /** The path of the web app, whose links have the same parameters. */
    private static final String APP = "/phone/#";

    public final Origin relay;
    public final String website;
    /** The opaque id of the user. */
    public final String token;
    public final String code;
    /** The SHA-256 of the key of the relay's authority. */
    public final byte[] pin;
    /**
     * The secret of the website, which the relay never sees; null if it was mailed by the relay.
     */
    public final byte[] websiteKey;

    public Activation(String text) throws Malformed {
        int path = text.indexOf(APP);
        Origin app = path < 0 ? null : Origin.read(text.substring(0, path));
        if (app == null && !text.startsWith(START)) {
            throw new Malformed("it does not begin with " + START + ", and is no link to a web app");
        }
        Map<String, String> values = parameters(text.substring(app == null ? START.length() : path + APP.length()));
        relay = Origin.read(value(values, "relay"));
        website = value(values, "website");
        token = value(values, "token");
        code = value(values, "code");
        pin = Base64Url.decode(value(values, "pin"), 32);
        websiteKey = Base64Url.decode(values.get("k"), 32);
        if (relay == null) {
            throw new Malformed("relay is not https://HOST:PORT");
        }
        if (!website.matches("[a-z0-9][a-z0-9.-]{0,63}")) {
            throw new Malformed("website is no name of a website");
        }
        if (pin == null) {
            throw new Malformed("pin is no SHA-256 in base64url");
        }
        if (values.containsKey("k") && websiteKey == null) {
            throw new Malformed("k is not 256 bits in base64url");
        }
        // The relay could read it there by another page.
        if (websiteKey != null && app != null && (app.hasHostOf(relay) || app.hasHostOf(Origin.read(values.get("at"))))) {
            throw new Malformed("k must not be in a link to a host of the relay");
        }
    }

    private static String value(Map<String, String> values, String name) throws Malformed {
        String value = values.get(name);
        if (value == null || value.isEmpty() || !Text.isShowable(value)) {
            throw new Malformed(name + " is missing or malformed");
        }
        return value;
    }

    private static Map<String, String> parameters(String query) throws Malformed {
        Map<String, String> values = new HashMap<>();
        for (String pair : query.split("&", -1)) {
            int equals = pair.indexOf('=');
            if (equals < 0) {
                throw new Malformed("it has a parameter without a value");
            }
            String name = decoded(pair.substring(0, equals));
            // With two values, this reader might use one and another reader the other.
            if (values.put(name, decoded(pair.substring(equals + 1))) != null) {
                throw new Malformed("a parameter appears twice");
            }
        }
        return values;
    }

    /** Decodes percent-encoding. {@code URLDecoder} would also make spaces of plus signs. */
    private static String decoded(String text) throws Malformed {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        byte[] given = text.getBytes(StandardCharsets.UTF_8);
        for (int index = 0; index < given.length; index++) {
            if (given[index] != '%') {
                bytes.write(given[index]);
                continue;
            }
            int high = index + 2 < given.length ? Character.digit(given[index + 1], 16) : -1;
            int low = index + 2 < given.length ? Character.digit(given[index + 2], 16) : -1;
            if (high < 0 || low < 0) {
                throw new Malformed("its percent-encoding is malformed");
            }
            bytes.write(high * 16 + low);
            index += 2;
        }
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes.toByteArray())).toString();
        } catch (CharacterCodingException notUtf8) {
            throw new Malformed("a value is not UTF-8");
        }
    }
}
