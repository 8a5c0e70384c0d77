import Glibc
import Synchronization

/// A value that a thread waits for. `@unchecked Sendable`: sem_post and sem_wait are made for several threads, the
/// memory lives as long as the object, and the value has its own lock.
final class Awaited<Value: Sendable>: @unchecked Sendable {
    private let value = Mutex<Value?>(nil)
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() { sem_init(semaphore, 0, 0) }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    func set(_ new: Value) {
        value.withLock { $0 = new }
        sem_post(semaphore)
    }

    func wait() -> Value {
        while true {
            if let value = value.withLock({ $0 }) { return value }
            sem_wait(semaphore)
        }
    }
}
