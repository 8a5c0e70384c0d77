import EventLoop
import Relay
import Synchronization

/// What a relay does again and again without being asked: looks for what others changed, moves its beat, says what has
/// ended, looks into the outbox, calls websites, tidies up, seals anew what an old key has sealed, counts the days of
/// certificates.
final class Rounds: Sendable {
    private let stopped = Mutex(false)

    init(relay: Relay, certificates: Certificates, loop: EventLoop) {
        loop.post {
            self.every(.milliseconds(50), on: loop) { await relay.watch() }
            self.every(.seconds(1), on: loop) { await relay.keep() }
            self.every(.seconds(1), on: loop) { await relay.releaseLeft() }
            self.every(.seconds(1), on: loop) { await relay.attend() }
            self.every(.seconds(1), on: loop) { await relay.attendCalls() }
            self.every(.seconds(60), on: loop) { await relay.tidy() }
            self.every(.seconds(60), on: loop) { await relay.reseal() }
            self.every(.seconds(60), on: loop) { certificates.look() }
        }
    }

    private var isStopped: Bool { stopped.withLock { $0 } }

    func stop() { stopped.withLock { $0 = true } }

    /// The next round begins when the last has ended, however long it took.
    private func every(_ pause: Duration, on loop: EventLoop, _ round: @escaping @Sendable () async -> Void) {
        loop.spawn {
            guard !self.isStopped else { return }
            await round()
            guard !self.isStopped else { return }
            _ = loop.schedule(after: pause) { self.every(pause, on: loop, round) }
        }
    }
}
