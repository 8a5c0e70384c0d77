package twoefay.phone;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A clock that is wrong by {@code error} and goes on by itself only as the real one does. It never
 * sleeps.
 */
final class TestClock implements Clock {
    volatile long error;
    final AtomicLong paused = new AtomicLong();
    final List<Long> pauses = new ArrayList<>();

    @Override
    public long now() {
        return System.currentTimeMillis() + error + paused.get();
    }

    @Override
    public long monotonicNanos() {
        return System.nanoTime() + 1_000_000 * paused.get();
    }

    @Override
    public synchronized void pause(long millis) throws InterruptedException {
        pauses.add(millis);
        paused.addAndGet(millis);
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
    }
}
