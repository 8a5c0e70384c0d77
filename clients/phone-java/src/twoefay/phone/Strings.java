package twoefay.phone;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The texts of pushes, in English and German. On Android they belong into {@code strings.xml},
 * under the same keys.
 *
 * <p>A push only announces that there is something to ask {@code /pending} for. Never show its
 * content as what the person agrees to.
 */
public final class Strings {
    private static final Map<String, String> ENGLISH = new HashMap<>();
    private static final Map<String, String> GERMAN = new HashMap<>();

    static {
        add("TITLE", "Login request", "Anmeldung");
        add("LOGIN", "Is this you?", "Sind Sie das?");
        add("LOGIN_SERVICE", "Is this you, at %1$s?", "Sind Sie das, bei %1$s?");
        add("LOGIN_PLACE", "Is this you, from %1$s?", "Sind Sie das, aus %1$s?");
        add("LOGIN_IP", "Is this you, from %1$s?", "Sind Sie das, von %1$s?");
        add("LOGIN_SERVICE_PLACE", "Is this you, at %1$s, from %2$s?", "Sind Sie das, bei %1$s, aus %2$s?");
        add("LOGIN_SERVICE_IP", "Is this you, at %1$s, from %2$s?", "Sind Sie das, bei %1$s, von %2$s?");
        add("LOGIN_PLACE_IP", "Is this you, from %1$s (%2$s)?", "Sind Sie das, aus %1$s (%2$s)?");
        add("LOGIN_SERVICE_PLACE_IP", "Is this you, at %1$s, from %2$s (%3$s)?",
            "Sind Sie das, bei %1$s, aus %2$s (%3$s)?");
    }

    private Strings() {}

    private static void add(String key, String english, String german) {
        ENGLISH.put("TWOEFAY_" + key, english);
        GERMAN.put("TWOEFAY_" + key, german);
    }

    /** Returns the title of a push: the website's name, or a general text. */
    public static String title(Json push, String language) {
        String title = push.text("title");
        return title != null && Text.isShowable(title) ? title : of(language).get("TWOEFAY_TITLE");
    }

    /** Returns the text of a push. An unknown key gives the general text. */
    public static String text(Json push, String language) {
        Map<String, String> texts = of(language);
        String format = texts.get(String.valueOf(push.text("loc-key")));
        List<Object> values = arguments(push);
        Object[] arguments = values == null ? new Object[0] : values.toArray();
        boolean isComplete = format != null && !format.contains("%" + (arguments.length + 1) + "$s");
        boolean isShowable = true;
        for (Object each : arguments) {
            isShowable = isShowable && each instanceof String && Text.isShowable((String) each);
        }
        return isComplete && isShowable ? String.format(format, arguments) : texts.get("TWOEFAY_LOGIN");
    }

    /** Returns the arguments: a list, or in a message of Firebase the JSON of one. */
    private static List<Object> arguments(Json push) {
        try {
            String text = push.text("loc-args");
            return text == null ? push.list("loc-args") : Json.read("{\"list\":" + text + "}").list("list");
        } catch (Json.Malformed malformed) {
            return null;
        }
    }

    private static Map<String, String> of(String language) {
        return "de".equals(language) ? GERMAN : ENGLISH;
    }
}
