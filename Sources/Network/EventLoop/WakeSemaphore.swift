import CLinux
import Glibc
import World

/// A semaphore between threads. It begins without a signal, and each wait uses up one.
///
/// Guard, for `@unchecked Sendable`: the only field is a pointer that never changes. POSIX lets any
/// thread call sem_post and sem_wait on its memory, which is freed only when nobody has the object.
public final class WakeSemaphore: @unchecked Sendable {
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    public init() { sem_init(semaphore, 0, 0) }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    public func signal() { sem_post(semaphore) }
    public func wait() { while sem_wait(semaphore) != 0 {} }

    /// Waits for a signal. Returns false if none came in time.
    public func wait(for limit: Duration) -> Bool {
        // The system waits by its own clock, even if a test has another.
        let (seconds, nanoseconds) = (SystemTime().instant() + limit).nanoseconds.quotientAndRemainder(
            dividingBy: 1_000_000_000)
        var end = timespec(tv_sec: Int(seconds), tv_nsec: Int(nanoseconds))
        while true {
            if clinux_wait_until(semaphore, CLOCK_MONOTONIC, &end) == 0 { return true }
            if errno != EINTR { return false }
        }
    }
}
