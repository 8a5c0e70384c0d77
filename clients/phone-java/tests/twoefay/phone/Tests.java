package twoefay.phone;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Comparator;

/**
 * Runs all tests, or those whose {@code Class.method} contains an argument, and prints the counts.
 */
public final class Tests {
    /** A test: a static method without parameters. */
    @Retention(RetentionPolicy.RUNTIME)
    @interface Test {}

    private static final Class<?>[] CLASSES = {
        PageTests.class, FormatTests.class, CryptoTests.class, ChallengeTests.class, PinningTests.class,
        ScriptedEnrolTests.class, ScriptedAnswerTests.class, ScriptedRelayTests.class, TransportTests.class,
        EnrolConversations.class, LoginConversations.class, PinConversations.class, OtherConversations.class,
        ClockConversations.class, AuthorityConversations.class,
    };

    private Tests() {}

    public static void main(String[] arguments) throws Exception {
        int passed = 0;
        int failed = 0;
        for (Class<?> each : CLASSES) {
            Method[] methods = each.getDeclaredMethods();
            Arrays.sort(methods, Comparator.comparing(Method::getName));
            for (Method method : methods) {
                String name = each.getSimpleName() + "." + method.getName();
                if (!method.isAnnotationPresent(Test.class)
                    || arguments.length > 0 && Arrays.stream(arguments).noneMatch(name::contains)) {
                    continue;
                }
                try {
                    method.setAccessible(true);
                    method.invoke(null);
                    passed += 1;
                } catch (InvocationTargetException thrown) {
                    failed += 1;
                    System.err.println("FAILED " + name);
                    thrown.getCause().printStackTrace();
                }
            }
        }
        RealRelay.stopAll();
        System.out.println("clients/phone-java/test: " + passed + " passed, 0 skipped"
            + (failed > 0 ? ", " + failed + " FAILED" : ""));
        // Threads of a test that failed may still wait.
        System.exit(failed == 0 && passed > 0 ? 0 : 1);
    }
}
