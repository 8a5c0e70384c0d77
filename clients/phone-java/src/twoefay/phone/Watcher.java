package twoefay.phone;

import java.util.ArrayList;
import java.util.List;

/** Waits for challenges while the app is in the foreground: held requests, one after the other. */
public final class Watcher implements Runnable {
    /** Learns what happens, on the thread of the watcher. */
    public interface Screen {
        /**
         * The challenges that are pending now: show new ones, and remove those that are missing.
         */
        void show(Phone.Pending pending);

        /** The relay cannot be asked for now. The watcher tries again by itself. */
        void waits(Failure failure, long millis);

        /** The phone was suspended or unbound, or the app is at fault: the watcher has stopped. */
        void ends(Failure failure);
    }

    private static final long PAUSE = 2_000;
    private static final long LONGEST_PAUSE = 30_000;
    /** An answer that came faster than this was not held. */
    private static final long AT_ONCE = 1_000_000_000L;

    private final App app;
    private final Phone phone;
    private final Screen screen;
    private volatile boolean isStopped;

    public Watcher(App app, Phone phone, Screen screen) {
        this.app = app;
        this.phone = phone;
        this.screen = screen;
    }

    /** Ends the watcher, and the request that is held for it. */
    public void stop() {
        isStopped = true;
        phone.disconnect();
    }

    @Override
    public void run() {
        List<String> known = new ArrayList<>();
        boolean isFirst = true;
        long pause = PAUSE;
        while (!isStopped) {
            try {
                long start = app.clock.monotonicNanos();
                // The first request is not held, so that the screen has something to show at once.
                Phone.Pending pending = phone.pending(isFirst ? 0 : 60, known);
                boolean isNew = isFirst || !pending.known.equals(known);
                isFirst = false;
                known = pending.known;
                pause = PAUSE;
                screen.show(pending);
                if (!isNew && app.clock.monotonicNanos() - start < AT_ONCE) {
                    app.clock.pause(PAUSE);
                }
            } catch (Failure failure) {
                if (isStopped) {
                    return;
                }
                if (!failure.mayPass()) {
                    screen.ends(failure);
                    return;
                }
                long wait = failure.retryAfter != null ? 1000 * failure.retryAfter : pause;
                pause = Math.min(2 * pause, LONGEST_PAUSE);
                screen.waits(failure, wait);
                if (!isPaused(wait)) {
                    return;
                }
            } catch (InterruptedException ended) {
                return;
            }
        }
    }

    private boolean isPaused(long millis) {
        try {
            app.clock.pause(millis);
            return true;
        } catch (InterruptedException ended) {
            return false;
        }
    }
}
