import CLinux
import Glibc

/// A thread of the system that runs `body` once. Join it or let it go.
///
/// `@unchecked Sendable`: the handle is written once, before anybody else sees it, and only given to pthread_join.
struct SystemThread: @unchecked Sendable {
    private let handle: pthread_t

    init(name: String, _ body: @escaping @Sendable () -> Void) throws(SystemFailure) {
        let context = Unmanaged.passRetained(ThreadBody(name: name, body: body))
        var handle = pthread_t()
        let code = pthread_create(&handle, nil, threadMain, context.toOpaque())
        guard code == 0 else {
            context.release()
            throw SystemFailure("pthread_create", code)
        }
        self.handle = handle
    }

    func join() { pthread_join(handle, nil) }
    func detach() { pthread_detach(handle) }
}

private final class ThreadBody: Sendable {
    let name: String
    let body: @Sendable () -> Void

    init(name: String, body: @escaping @Sendable () -> Void) {
        self.name = name
        self.body = body
    }
}

/// A global function, because a closure here might be checked for an actor that this thread is not.
private nonisolated func threadMain(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let context else { return nil }
    let thread = Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue()
    clinux_name_thread(thread.name)
    thread.body()
    return nil
}
