import Bytes
import Crypto
import EventLoop
import Synchronization
import World

/// Hashes and verifies passwords on its own thread, one after the other. Each takes a good part of
/// a second, and the loop must answer other requests meanwhile.
final class Passwords: Sendable {
    private let thread: WorkerThread
    private let cost: PasswordHash.Cost
    private let randomness: any Randomness
    /// The hash that is compared for an unknown name, so that the answer takes as long as for a
    /// known one.
    private let nobody: PasswordHash
    private let isClosed = Mutex(false)

    init(cost: PasswordHash.Cost = .usual, randomness: any Randomness) throws {
        self.cost = cost
        self.randomness = randomness
        nobody = try PasswordHash(Secret(randomness.bytes(32)), cost: cost, randomness: randomness)
        thread = try WorkerThread(name: "passwords")
    }

    /// Returns the hash of a password; nil if the memory for it is not available or the object is
    /// closed.
    func hash(_ password: Secret) async -> PasswordHash? {
        await onThread { [cost, randomness] in try? PasswordHash(password, cost: cost, randomness: randomness) } ?? nil
    }

    /// Whether the password matches the hash. Without a hash the result is false, after the same
    /// time.
    func matches(_ password: Secret, _ hash: PasswordHash?) async -> Bool {
        let isRight = await onThread { [nobody] in (hash ?? nobody).matches(password) } ?? false
        return isRight && hash != nil
    }

    /// Stops the thread after the work that was already submitted.
    func close() {
        isClosed.withLock { closed in
            closed = true
            thread.stop()
        }
    }

    /// Runs work on the thread; nil if the object is closed.
    private func onThread<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value? {
        await withCheckedContinuation { continuation in
            isClosed.withLock { closed in
                // A stopped thread drops work that is submitted to it.
                guard !closed else { return continuation.resume(returning: nil) }
                thread.post { continuation.resume(returning: work()) }
            }
        }
    }
}
