import EventLoop
import Relay
import World

/// The store as the verbs see it: it runs scripts.
public final class Store: Sendable {
    /// Runs a script and gives back one `Rows` for each of its reads.
    public func run(_ script: Script) async throws(StoreFailure) -> [Rows] {
        throw .unavailable("not there yet")
    }

    /// The same for a program that has no loop.
    public func runBlocking(_ script: Script) throws(StoreFailure) -> [Rows] {
        throw .unavailable("not there yet")
    }
}
