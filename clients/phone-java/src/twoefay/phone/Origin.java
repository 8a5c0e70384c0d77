package twoefay.phone;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The address of a relay, {@code https://HOST:PORT}, exactly as {@code aud} and {@code htu} have
 * it.
 */
public final class Origin {
    private static final Pattern FORM =
        Pattern.compile("https://([A-Za-z0-9._-]{1,253}|\\[[0-9A-Fa-f:.]{2,45}\\])(?::([1-9][0-9]{0,4}))?");

    public final String text;
    /** The host, without the brackets of an IPv6 address. */
    public final String host;
    public final int port;

    private Origin(String text, String host, int port) {
        this.text = text;
        this.host = host;
        this.port = port;
    }

    /** Reads an origin; null if it is none, such as with a path or a user. */
    public static Origin read(String text) {
        if (text == null) {
            return null;
        }
        Matcher found = FORM.matcher(text);
        if (!found.matches()) {
            return null;
        }
        int port = found.group(2) == null ? 443 : Integer.parseInt(found.group(2));
        String host = found.group(1);
        host = host.startsWith("[") ? host.substring(1, host.length() - 1) : host;
        return port > 65_535 ? null : new Origin(text, host, port);
    }

    /** Whether both have one host; its letters may be of either case. */
    boolean hasHostOf(Origin other) {
        return other != null && host.equalsIgnoreCase(other.host);
    }

    /** The value of the field {@code Host}. */
    String authority() {
        return text.substring("https://".length());
    }
}
