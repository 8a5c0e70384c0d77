import CLinux
import Glibc
import Synchronization

/// Resolves names to addresses on a separate thread, because getaddrinfo may block as long as the
/// name servers do.
public enum Resolver {
    private static let worker = Mutex<WorkerThread?>(nil)

    /// Resolves a name; an address is returned without a look-up. Nothing is cached. Call it from a
    /// task on a loop; it returns to that loop.
    public static func addresses(host: String, port: UInt16) async -> Result<[SocketAddress], ResolverFailure> {
        if let address = SocketAddress(host: host, port: port) { return .success([address]) }
        let thread: WorkerThread
        do throws(SystemFailure) { thread = try sharedWorker() } catch {
            return .failure(ResolverFailure(reason: error.description))
        }
        return await withUnsafeContinuation { continuation in
            thread.post { continuation.resume(returning: lookUp(host, port)) }
        }
    }

    private static func sharedWorker() throws(SystemFailure) -> WorkerThread {
        try worker.withLock { (worker) throws(SystemFailure) in
            if let worker { return worker }
            let made = try WorkerThread(name: "resolver")
            worker = made
            return made
        }
    }

    /// Resolves a name on this thread, which may block.
    package static func lookUp(_ host: String, _ port: UInt16) -> Result<[SocketAddress], ResolverFailure> {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, String(port), &hints, &list)
        guard code == 0 else { return .failure(ResolverFailure(reason: String(cString: gai_strerror(code)))) }
        defer { freeaddrinfo(list) }
        var found: [SocketAddress] = []
        var next = list
        while let entry = next {
            if let address = entry.pointee.ai_addr {
                found.append(SocketAddress(address, length: entry.pointee.ai_addrlen))
            }
            next = entry.pointee.ai_next
        }
        return found.isEmpty ? .failure(ResolverFailure(reason: "no address")) : .success(found)
    }
}

public struct ResolverFailure: Error, Sendable, Equatable {
    public let reason: String
}
