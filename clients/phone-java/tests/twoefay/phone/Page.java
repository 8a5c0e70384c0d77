package twoefay.phone;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The named blocks of docs/phones/device-protocol.md. */
final class Page {
    private static final Path PATH = Path.of(System.getProperty("twoefay.docs"), "phones", "device-protocol.md");
    private static final String TEXT = read();

    private Page() {}

    private static String read() {
        try {
            return Files.readString(PATH);
        } catch (IOException missing) {
            throw new AssertionError(missing);
        }
    }

    /**
     * Returns the block, such as of {@code json enrol claims}, without the line break at its end.
     */
    static String block(String name) {
        Matcher found = Pattern.compile("(?m)^ *```" + Pattern.quote(name) + "\n(.*)\n *```$").matcher(TEXT);
        Check.that(found.find(), "there is no block " + name);
        String block = found.group(1).strip();
        Check.that(!found.find(), "there are two blocks " + name);
        return block;
    }

    static String text() {
        return TEXT;
    }
}
