import EventLoop

/// The names by which a caller on this machine may address a server on it.
///
/// A browser on this machine also sends requests on behalf of pages of other sites. Two checks
/// detect that. Another site may make its name resolve to this machine (DNS rebinding), but then
/// the browser sends that name in `Host`. If a page of another site posts to this server, the
/// browser sends that site's name in `Origin`.
public struct LocalNames: Sendable {
    private let authorities: [String]

    init(_ address: SocketAddress) {
        let own = address.host.contains(":") ? "[\(address.host)]" : address.host
        let names = ["localhost", "127.0.0.1", "[::1]"] + (address.isUnix ? [] : [own])
        // Without a port a caller means port 80, as in a URL for a Unix socket.
        let port = address.isUnix ? 80 : address.port
        authorities = names.map { "\($0):\(port)" } + (port == 80 ? names : [])
    }

    /// A URL under one of the names, for messages.
    public var example: String { "http://\(contain(host: "localhost") ? "localhost" : authorities[0])/" }

    public func contain(host: String) -> Bool {
        let host = host.lowercased()
        return authorities.contains { $0.utf8.elementsEqual(host.utf8) }
    }

    func contain(origin: String) -> Bool {
        origin.hasPrefix("http://") && contain(host: String(origin.dropFirst(7)))
    }
}
