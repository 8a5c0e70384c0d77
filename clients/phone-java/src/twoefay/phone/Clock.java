package twoefay.phone;

/** The clocks of the phone. */
public interface Clock {
    /** The time in milliseconds since 1970. The person can set it. */
    long now();

    /**
     * A time that cannot be set and goes on while the phone sleeps: {@code elapsedRealtimeNanos}.
     */
    long monotonicNanos();

    void pause(long millis) throws InterruptedException;

    /** The clocks of Java. On Android, {@code System.nanoTime} stops while the phone sleeps. */
    final class OfSystem implements Clock {
        @Override
        public long now() {
            return System.currentTimeMillis();
        }

        @Override
        public long monotonicNanos() {
            return System.nanoTime();
        }

        @Override
        public void pause(long millis) throws InterruptedException {
            Thread.sleep(millis);
        }
    }
}
