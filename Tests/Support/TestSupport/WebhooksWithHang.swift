import Relay
import Synchronization
import Webhooks

/// The receivers of several websites, of which one never answers until the test ends it.
public final class WebhooksWithHang: WebhookCourier {
    private struct State {
        var hung: [CheckedContinuation<Void, Never>] = []
        var isOver = false
    }

    private let state = Mutex(State())
    private let silent: String
    /// The receivers that answer.
    public let answering = RecordedWebhooks()

    /// - Parameter silent: a part of the URL of the receiver that hangs.
    public init(_ silent: String) { self.silent = silent }

    public func send(_ request: WebhookRequest) async -> WebhookOutcome {
        guard request.url.contains(silent) else { return await answering.send(request) }
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if !state.isOver { state.hung.append(continuation) }
                return state.isOver
            }
            if isOver { continuation.resume() }
        }
        return .answered(status: 200)
    }

    /// Answers all webhooks, also later ones.
    public func end() {
        let hung = state.withLock { state in
            defer { state.hung = [] }
            state.isOver = true
            return state.hung
        }
        for continuation in hung { continuation.resume() }
    }
}
