import EventLoop
import Synchronization
import World

/// A client for each loop, all with the same options, for code that sends from several loops.
public final class WebClients: Sendable {
    public let options: WebClientOptions
    private let clients = Mutex<[ObjectIdentifier: LoopBound<WebClient>]>([:])

    public init(_ options: WebClientOptions) { self.options = options }

    /// No transfer runs: a caller that waits keeps this object alive. Each client is released on
    /// its own loop.
    deinit { close() }

    /// The client of the current loop, made if there is none.
    public func current() throws(SystemFailure) -> WebClient {
        guard let loop = EventLoop.current else { preconditionFailure("WebClients: not on a loop") }
        if let client = clients.withLock({ $0[ObjectIdentifier(loop)] }) { return client.value }
        // Only this loop makes a client for itself.
        let client = try WebClient(loop: loop, options: options)
        clients.withLock { $0[ObjectIdentifier(loop)] = LoopBound(client, on: loop) }
        return client
    }

    /// Ends all transfers and closes the connections of all loops.
    public func close() {
        for client in clients.withLock({ Array($0.values) }) { client.loop.post { client.value.close() } }
    }
}
