package twoefay.phone;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * A strict reader of I-JSON (RFC 7493).
 *
 * <p>Two readers must not read the same bytes differently: a phone would otherwise show one amount
 * and a website check another. So a name that appears twice, bytes that are no UTF-8, half of a
 * surrogate pair, a noncharacter and everything that RFC 8259 does not allow are errors.
 */
final class JsonReader {
    private static final int MOST_LEVELS = 16;

    private final String text;
    private int position;
    private int level;

    JsonReader(byte[] bytes) throws Json.Malformed {
        try {
            // A new decoder reports malformed bytes, while new String(…) would replace them.
            text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
        } catch (CharacterCodingException notUtf8) {
            throw new Json.Malformed("it is not UTF-8");
        }
    }

    Json object() throws Json.Malformed {
        Object value = value();
        skipSpaces();
        if (!(value instanceof Json) || position != text.length()) {
            throw fault("it is not one JSON object");
        }
        return (Json) value;
    }

    private Object value() throws Json.Malformed {
        skipSpaces();
        char first = peek();
        switch (first) {
            case '{': return members();
            case '[': return elements();
            case '"': return string();
            case 't': return word("true", true);
            case 'f': return word("false", false);
            case 'n': return word("null", null);
            default: return number();
        }
    }

    private Json members() throws Json.Malformed {
        enter();
        Json object = new Json();
        if (!isEmpty('}')) {
            do {
                skipSpaces();
                String name = string();
                skipSpaces();
                take(':');
                object.putRead(name, value());
            } while (another('}'));
        }
        level -= 1;
        return object;
    }

    private List<Object> elements() throws Json.Malformed {
        enter();
        List<Object> list = new ArrayList<>();
        if (!isEmpty(']')) {
            do {
                list.add(value());
            } while (another(']'));
        }
        level -= 1;
        return list;
    }

    private void enter() throws Json.Malformed {
        position += 1;
        level += 1;
        if (level > MOST_LEVELS) {
            throw fault("it has too many levels");
        }
    }

    private boolean isEmpty(char end) throws Json.Malformed {
        skipSpaces();
        if (peek() != end) {
            return false;
        }
        position += 1;
        return true;
    }

    private boolean another(char end) throws Json.Malformed {
        skipSpaces();
        if (peek() == ',') {
            position += 1;
            return true;
        }
        take(end);
        return false;
    }

    private String string() throws Json.Malformed {
        take('"');
        StringBuilder out = new StringBuilder();
        while (true) {
            char next = next();
            if (next == '"') {
                break;
            }
            if (next < 0x20) {
                throw fault("a text has a control character");
            }
            out.append(next == '\\' ? escaped() : next);
        }
        for (int index = 0; index < out.length(); index += Character.charCount(out.codePointAt(index))) {
            int point = out.codePointAt(index);
            if (point >= 0xD800 && point <= 0xDFFF || point == 0) {
                throw fault("a text has half of a surrogate pair, or U+0000");
            }
            if ((point & 0xFFFE) == 0xFFFE || point >= 0xFDD0 && point <= 0xFDEF) {
                throw fault("a text has a noncharacter");
            }
        }
        return out.toString();
    }

    private char escaped() throws Json.Malformed {
        char letter = next();
        switch (letter) {
            case '"': case '\\': case '/': return letter;
            case 'b': return '\b';
            case 'f': return '\f';
            case 'n': return '\n';
            case 'r': return '\r';
            case 't': return '\t';
            case 'u': break;
            default: throw fault("an escape is unknown");
        }
        int code = 0;
        for (int count = 0; count < 4; count++) {
            char digit = next();
            int value = digit < 0x80 ? Character.digit(digit, 16) : -1;
            if (value < 0) {
                throw fault("an escape is not hexadecimal");
            }
            code = code * 16 + value;
        }
        return (char) code;
    }

    private Object number() throws Json.Malformed {
        int start = position;
        while (position < text.length() && "+-.eE0123456789".indexOf(text.charAt(position)) >= 0) {
            position += 1;
        }
        String digits = text.substring(start, position);
        if (!digits.matches("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?")) {
            throw fault("it has no value where one is expected");
        }
        boolean isInteger = digits.matches("-?[0-9]+");
        try {
            return isInteger ? (Object) Long.valueOf(digits) : (Object) Double.valueOf(digits);
        } catch (NumberFormatException tooLarge) {
            throw fault("an integer has more than 64 bits");
        }
    }

    private Object word(String word, Object value) throws Json.Malformed {
        if (!text.startsWith(word, position)) {
            throw fault("it has an unknown word");
        }
        position += word.length();
        return value;
    }

    private void skipSpaces() {
        while (position < text.length() && " \t\r\n".indexOf(text.charAt(position)) >= 0) {
            position += 1;
        }
    }

    private char peek() throws Json.Malformed {
        if (position >= text.length()) {
            throw fault("it ends too early");
        }
        return text.charAt(position);
    }

    private char next() throws Json.Malformed {
        char next = peek();
        position += 1;
        return next;
    }

    private void take(char expected) throws Json.Malformed {
        if (next() != expected) {
            throw fault("'" + expected + "' is missing");
        }
    }

    private Json.Malformed fault(String reason) {
        return new Json.Malformed(reason);
    }
}
