import Bytes
import Crypto
import EventLoop
import Synchronization
import World

/// Makes and compares what is kept of passwords, one after the other on a thread of its own: each takes a good part of a
/// second, and the loop has others to answer meanwhile.
final class Passwords: Sendable {
    private let thread: WorkerThread
    private let cost: PasswordHash.Cost
    private let randomness: any Randomness
    /// Compared with where nobody has that name, so that it takes as long.
    private let nobody: PasswordHash
    private let isClosed = Mutex(false)

    init(cost: PasswordHash.Cost = .usual, randomness: any Randomness) throws {
        self.cost = cost
        self.randomness = randomness
        nobody = try PasswordHash(Secret(randomness.bytes(32)), cost: cost, randomness: randomness)
        thread = try WorkerThread(name: "passwords")
    }

    /// Nil where there is no memory for it.
    func hash(_ password: Secret) async -> PasswordHash? {
        await onThread { [cost, randomness] in try? PasswordHash(password, cost: cost, randomness: randomness) } ?? nil
    }

    /// False for a hash that is not there, and as late.
    func matches(_ password: Secret, _ hash: PasswordHash?) async -> Bool {
        let isRight = await onThread { [nobody] in (hash ?? nobody).matches(password) } ?? false
        return isRight && hash != nil
    }

    /// What is waited for is still done.
    func close() {
        isClosed.withLock { closed in
            closed = true
            thread.stop()
        }
    }

    /// Nil when it is closed.
    private func onThread<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value? {
        await withCheckedContinuation { continuation in
            isClosed.withLock { closed in
                // A stopped thread drops what it is given.
                guard !closed else { return continuation.resume(returning: nil) }
                thread.post { continuation.resume(returning: work()) }
            }
        }
    }
}
