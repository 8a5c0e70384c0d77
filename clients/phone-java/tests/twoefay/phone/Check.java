package twoefay.phone;

import java.util.Objects;

/** Assertions. */
final class Check {
    interface Action {
        void run() throws Exception;
    }

    private Check() {}

    static void equal(Object expected, Object actual) {
        if (!Objects.equals(expected, actual)) {
            throw new AssertionError("expected " + expected + ", but it is " + actual);
        }
    }

    static void that(boolean isRight, Object message) {
        if (!isRight) {
            throw new AssertionError(String.valueOf(message));
        }
    }

    static <E extends Throwable> E fails(Class<E> type, Action action) {
        try {
            action.run();
        } catch (Throwable thrown) {
            if (type.isInstance(thrown)) {
                return type.cast(thrown);
            }
            throw new AssertionError("expected " + type.getSimpleName(), thrown);
        }
        throw new AssertionError("expected " + type.getSimpleName() + ", but nothing was thrown");
    }

    static Failure refused(int status, String code, Action action) {
        Failure failure = fails(Failure.class, action);
        that(failure.is(status, code), failure.kind + " " + failure.status + " " + failure.code + ": " + failure.getMessage());
        return failure;
    }

    static byte[] hex(String text) {
        return java.util.HexFormat.of().parseHex(text.replaceAll("\\s", ""));
    }

    static String hex(byte[] bytes) {
        return java.util.HexFormat.of().formatHex(bytes);
    }
}
