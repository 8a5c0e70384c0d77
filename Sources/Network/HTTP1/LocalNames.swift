import EventLoop

/// The names by which a caller on this machine may address a server on it.
///
/// A browser on this machine also sends requests on behalf of pages of other sites. Two checks
/// detect that. Another site may make its name resolve to this machine (DNS rebinding), but then
/// the browser sends that name in `Host`. If a page of another site posts to this server, the
/// browser sends that site's name in `Origin`.
struct LocalNames: Sendable {
    private let authorities: [String]

    init(_ address: SocketAddress) {
        let own = address.host.contains(":") ? "[\(address.host)]" : address.host
        let names = ["localhost", "127.0.0.1", "[::1]", own]
        // Without a port a browser means port 80.
        authorities = names.map { "\($0):\(address.port)" } + (address.port == 80 ? names : [])
    }

    func contain(host: String) -> Bool {
        let host = host.lowercased()
        return authorities.contains { $0.utf8.elementsEqual(host.utf8) }
    }

    func contain(origin: String) -> Bool {
        origin.hasPrefix("http://") && contain(host: String(origin.dropFirst(7)))
    }
}
