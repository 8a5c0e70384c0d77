import CLinux
import Glibc

/// A system thread that runs `body` once. The owner must join or detach it.
///
/// `@unchecked Sendable`: the handle is written once, before another thread sees it, and is only
/// passed to pthread functions.
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

/// The start routine of a thread. It is a global function, because a closure here might be checked
/// for an actor that this thread does not run.
private nonisolated func threadMain(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let context else { return nil }
    let thread = Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue()
    clinux_name_thread(thread.name)
    thread.body()
    return nil
}
