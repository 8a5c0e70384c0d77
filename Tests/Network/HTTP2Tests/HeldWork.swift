import EventLoop
import HTTP

@testable import HTTP2

/// The work of requests, which goes on until the test ends it.
final class HeldWork: Sendable {
    private let begun = Shared<[UnsafeContinuation<Void, Never>]>([])

    /// Returns when the test has ended the work.
    func run() async {
        await withUnsafeContinuation { continuation in begun.withLock { $0.append(continuation) } }
    }

    /// A reply that comes when the test has ended the work.
    func reply(_ response: Response) -> Reply {
        .later(deadline: .seconds(3600), late: Response(status: 503)) { [self] in
            await run()
            return .response(response)
        }
    }

    /// Returns when a request has begun its work.
    func hasBegun() async { await begun.until { !$0.isEmpty } }

    func end() { for continuation in begun.current { continuation.resume() } }
}

extension TestServer {
    /// Begins to drain the server. The value is true when that is over.
    func drain() async -> Shared<Bool> {
        let isOver = Shared(false)
        await loop.perform { server.value.drain { isOver.withLock { $0 = true } } }
        return isOver
    }
}
