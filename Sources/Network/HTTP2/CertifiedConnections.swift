import EventLoop
import HTTP

/// The connections of a server, indexed by the name in their client certificates. The index finds
/// the connections of one name without a search through all others.
struct CertifiedConnections {
    private var byName: [String: [ObjectIdentifier: ServerConnection]] = [:]

    mutating func add(_ connection: ServerConnection) {
        guard let name = Self.name(of: connection) else { return }
        byName[name, default: [:]][ObjectIdentifier(connection)] = connection
    }

    mutating func remove(_ connection: ServerConnection) {
        guard let name = Self.name(of: connection) else { return }
        byName[name]?[ObjectIdentifier(connection)] = nil
        if byName[name]?.isEmpty == true { byName[name] = nil }
    }

    func named(_ name: String) -> [ServerConnection] { byName[name].map { Array($0.values) } ?? [] }

    /// The name in the client certificate; nil unless it has exactly one. A certificate without
    /// exactly one name gives no access.
    private static func name(of connection: ServerConnection) -> String? {
        guard let uris = connection.certificate?.uris, uris.count == 1 else { return nil }
        return uris.first
    }
}

extension HTTP2Server {
    /// Ends the connections whose certificate has this name, except those with one of the keys in
    /// `keeping`. Their held requests are answered with the current state. Further requests are not
    /// processed. Returns the number of connections ended.
    @discardableResult public func endConnections(named uri: String, keeping: [[UInt8]] = []) -> Int {
        var count = 0
        for connection in certified.named(uri) {
            guard let certificate = connection.certificate, !keeping.contains(certificate.keyThumbprint) else {
                continue
            }
            connection.revoke()
            count += 1
        }
        return count
    }
}

extension ServerConnection {
    /// Ends a connection whose client certificate was revoked. Requests in progress are
    /// authenticated again, and their answers have one drain step to be sent.
    fileprivate func revoke() {
        session?.beginDrain()
        for stream in streams.values { stream.exchange?.finishHolding() }
        refuseFurtherStreams()
        loop.schedule(after: limits.drainStep) { [weak self] in self?.abort() }
    }
}
