import EventLoop

/// The names by which a caller on this machine may address a server on it.
///
/// A browser on this machine also sends requests for other sites' pages. Two checks detect that. A
/// page of another site may make its name resolve to this machine (DNS rebinding), but it sends its
/// own name in `Host`. A page that posts here from elsewhere sends its own name in `Origin`.
struct LocalNames: Sendable {
    private let authorities: [String]

    init(_ address: SocketAddress) {
        let own = address.host.contains(":") ? "[\(address.host)]" : address.host
        let names = ["localhost", "127.0.0.1", "[::1]", own]
        // Without a port a browser means port 80.
        authorities = names.map { "\($0):\(address.port)" } + (address.port == 80 ? names : [])
    }

    func areMeant(byHost host: String) -> Bool {
        let host = host.lowercased()
        return authorities.contains { $0.utf8.elementsEqual(host.utf8) }
    }

    func areMeant(byOrigin origin: String) -> Bool {
        origin.hasPrefix("http://") && areMeant(byHost: String(origin.dropFirst(7)))
    }
}
