import EventLoop
import Glibc
import Synchronization

/// The end of a read that takes too long.
///
/// Purpose: libldap's limits and the socket's count the time in which nothing arrives. A server
/// that sends a byte now and then would keep them waiting for ever, within one call. So a thread
/// waits for the limit of the whole read, and then shuts the connection down. To libldap, the
/// server has closed it.
///
/// Invariant: it shuts down the connection of its own read, and no other one. libldap may close its
/// descriptor at any time, and the next socket of the process then gets the same number. So this
/// object has a duplicate, which it alone closes.
///
/// Tested in `HostileServerTests.swift`.
final class LDAPWatchdog: Sendable {
    private struct State {
        /// The duplicate; negative if there is none.
        var descriptor: Int32 = -1
        var hasFired = false
    }

    private let state = Mutex(State())
    private let stopped = WakeSemaphore()

    deinit { closeDescriptor() }

    /// Whether the limit has passed before the read ended.
    var hasFired: Bool { state.withLock(\.hasFired) }

    /// Begins to wait for the limit.
    func start(_ limit: Duration) throws(SystemFailure) {
        let thread = try WorkerThread(name: "directory-limit")
        thread.post { [self] in
            if !stopped.wait(for: limit) { fire() }
        }
        thread.stop()
    }

    /// Watches the connection with this descriptor, instead of any earlier one. After the limit, it
    /// shuts the connection down at once.
    func watch(_ descriptor: Int32) throws(SystemFailure) {
        let own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard own >= 0 else { throw SystemFailure("fcntl") }
        closeDescriptor()
        state.withLock { state in
            state.descriptor = own
            if state.hasFired { shutdown(own, Int32(SHUT_RDWR)) }
        }
    }

    /// Ends the wait. It shuts nothing down any more.
    func stop() {
        closeDescriptor()
        stopped.signal()
    }

    private func fire() {
        state.withLock { state in
            state.hasFired = true
            if state.descriptor >= 0 { shutdown(state.descriptor, Int32(SHUT_RDWR)) }
        }
    }

    private func closeDescriptor() {
        state.withLock { state in
            if state.descriptor >= 0 { close(state.descriptor) }
            state.descriptor = -1
        }
    }
}
