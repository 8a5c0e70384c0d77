import EventLoop
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import KeyService

/// Connections to a listener whose queue is full.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct UnixSocketTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.path + "/socket" }

    init() throws { directory = try TemporaryDirectory() }

    /// Listens, and connects until the queue is full.
    private func full() throws -> (listener: Int32, queued: [Int32]) {
        let listener = try UnixSocket.listen(path, mode: 0o600)
        var queued: [Int32] = []
        while true {
            do throws(SystemFailure) {
                queued.append(try UnixSocket.connect(path))
            } catch {
                #expect(error.code == EAGAIN)
                return (listener, queued)
            }
        }
    }

    /// The directory of the calling thread in /proc.
    private static func thread() -> String {
        var bytes = [CChar](repeating: 0, count: 64)
        let count = readlink("/proc/thread-self", &bytes, bytes.count)
        return "/proc/" + String(decoding: bytes.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Whether a thread sleeps in the kernel.
    private func sleeps(_ thread: String) -> Bool {
        guard let text = try? TextFile.read("\(thread)/stat") else { return false }
        return text.split(separator: ")").last?.hasPrefix(" S") == true
    }

    /// Returns the failure to connect; nil if the connection is made.
    private static func failure(_ path: String, waitingSeconds seconds: Int) -> SystemFailure? {
        do throws(SystemFailure) {
            close(try UnixSocket.connect(path, waitingSeconds: seconds))
            return nil
        } catch {
            return error
        }
    }

    @Test func connectionWaitsForAPlaceInTheQueue() async throws {
        let (listener, queued) = try full()
        defer { for fd in queued + [listener] { close(fd) } }
        let thread = Mutex("")
        async let connected = blocking { [path] () -> Result<Int32, SystemFailure> in
            thread.withLock { $0 = Self.thread() }
            return Result { () throws(SystemFailure) in try UnixSocket.connect(path, waitingSeconds: 600) }
        }
        // The thread sleeps only in `connect`.
        while !sleeps(thread.withLock { $0 }) { await Task.yield() }
        let accepted = accept(listener, nil, nil)
        #expect(accepted >= 0)
        let fd = try await connected.get()
        #expect(fcntl(fd, F_GETFL) & O_NONBLOCK != 0)
        for fd in [accepted, fd] { close(fd) }
    }

    @Test func waitEnds() async throws {
        let (listener, queued) = try full()
        defer { for fd in queued + [listener] { close(fd) } }
        let failure = await blocking { [path] in Self.failure(path, waitingSeconds: 1) }
        #expect(failure == SystemFailure("connect", EAGAIN))
    }

    @Test func absentListenerIsNotWaitedFor() {
        #expect(Self.failure(path, waitingSeconds: 600) == SystemFailure("connect", ENOENT))
    }
}
