package twoefay.phone;

import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A JSON object whose members keep their order.
 *
 * <p>A value is a {@code String}, {@code Long}, {@code Double}, {@code Boolean}, {@code Json},
 * {@code List<Object>} or null. The methods that read a member return null if it is missing or has
 * another type: the caller decides whether it may be missing.
 */
public final class Json {
    /** The reason why a text is no JSON object of I-JSON. */
    public static final class Malformed extends Exception {
        Malformed(String reason) {
            super(reason);
        }
    }

    private final Map<String, Object> members = new LinkedHashMap<>();

    public static Json read(byte[] bytes) throws Malformed {
        return new JsonReader(bytes).object();
    }

    public static Json read(String text) throws Malformed {
        return read(text.getBytes(StandardCharsets.UTF_8));
    }

    /** Sets a member. A value of null leaves the member out. */
    public Json put(String name, Object value) {
        if (value == null) {
            members.remove(name);
        } else {
            members.put(name, value instanceof Integer ? Long.valueOf((Integer) value) : value);
        }
        return this;
    }

    void putRead(String name, Object value) throws Malformed {
        if (members.containsKey(name)) {
            throw new Malformed("a name appears twice");
        }
        members.put(name, value);
    }

    public Set<String> names() {
        return members.keySet();
    }

    public boolean has(String name) {
        return members.get(name) != null;
    }

    public String text(String name) {
        return as(String.class, members.get(name));
    }

    public Long integer(String name) {
        return as(Long.class, members.get(name));
    }

    public Boolean flag(String name) {
        return as(Boolean.class, members.get(name));
    }

    /** Whether the member is {@code true}. */
    public boolean isTrue(String name) {
        return Boolean.TRUE.equals(members.get(name));
    }

    public Json object(String name) {
        return as(Json.class, members.get(name));
    }

    @SuppressWarnings("unchecked")
    public List<Object> list(String name) {
        return as(List.class, members.get(name));
    }

    static <T> T as(Class<T> type, Object value) {
        return type.isInstance(value) ? type.cast(value) : null;
    }

    public byte[] bytes() {
        return toString().getBytes(StandardCharsets.UTF_8);
    }

    /** Returns the object as JSON without spaces, with no other escapes than JSON requires. */
    @Override
    public String toString() {
        StringBuilder out = new StringBuilder();
        write(this, out);
        return out.toString();
    }

    private static void write(Object value, StringBuilder out) {
        if (value instanceof Json) {
            String separator = "{";
            for (Map.Entry<String, Object> member : ((Json) value).members.entrySet()) {
                out.append(separator);
                write(member.getKey(), out);
                out.append(':');
                write(member.getValue(), out);
                separator = ",";
            }
            out.append(separator.equals("{") ? "{}" : "}");
        } else if (value instanceof List) {
            String separator = "[";
            for (Object each : (List<?>) value) {
                out.append(separator);
                write(each, out);
                separator = ",";
            }
            out.append(separator.equals("[") ? "[]" : "]");
        } else if (value instanceof String) {
            writeText((String) value, out);
        } else {
            out.append(value);
        }
    }

    private static void writeText(String text, StringBuilder out) {
        out.append('"');
        for (char each : text.toCharArray()) {
            if (each == '"' || each == '\\') {
                out.append('\\').append(each);
            } else if (each == '\n') {
                out.append("\\n");
            } else if (each < 0x20) {
                out.append(String.format("\\u%04x", (int) each));
            } else {
                out.append(each);
            }
        }
        out.append('"');
    }
}
