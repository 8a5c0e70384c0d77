import EventLoop
import Synchronization
import World

/// A client for each loop that wants one, with the same options, for whoever sends from several.
public final class WebClients: Sendable {
    public let options: WebClientOptions
    private let clients = Mutex<[ObjectIdentifier: LoopBound<WebClient>]>([:])

    public init(_ options: WebClientOptions) { self.options = options }

    /// Whoever still waits has kept it. On their loops they can be let go of only there.
    deinit { close() }

    /// That of the loop that this is called on, whose connections carry what it sends.
    public func current() throws(SystemFailure) -> WebClient {
        guard let loop = EventLoop.current else { preconditionFailure("WebClients: not on a loop") }
        if let client = clients.withLock({ $0[ObjectIdentifier(loop)] }) { return client.value }
        // Nobody else makes one for this loop.
        let client = try WebClient(loop: loop, options: options)
        clients.withLock { $0[ObjectIdentifier(loop)] = LoopBound(client, on: loop) }
        return client
    }

    /// Ends all transfers and closes the connections of all loops.
    public func close() {
        for client in clients.withLock({ Array($0.values) }) { client.loop.post { client.value.close() } }
    }
}
