import EventLoop
import HTTP

@testable import HTTP2

/// The work of requests that continues until the test ends it.
final class HeldWork: Sendable {
    private let begun = Shared<[UnsafeContinuation<Void, Never>]>([])

    /// Returns when the test ends the work.
    func run() async {
        await withUnsafeContinuation { continuation in begun.withLock { $0.append(continuation) } }
    }

    /// A reply that is sent when the test ends the work.
    func reply(_ response: Response) -> Reply {
        .later(deadline: .seconds(3600), late: { Response(status: 503) }) { [self] in
            await run()
            return .response(response)
        }
    }

    /// Returns when a request has started its work.
    func hasBegun() async { await begun.until { !$0.isEmpty } }

    func end() { for continuation in begun.current { continuation.resume() } }
}

extension TestServer {
    /// Starts to drain the server. The value becomes true when the drain has finished.
    func drain() async -> Shared<Bool> {
        let isOver = Shared(false)
        await loop.perform { server.value.drain { isOver.withLock { $0 = true } } }
        return isOver
    }
}
