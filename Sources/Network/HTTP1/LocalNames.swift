import EventLoop

/// The names under which a caller on this machine may know a server on it.
///
/// A browser on this machine will call it for anybody's page. Two things tell such a call from the person's own: a page
/// whose name was made to lead here (DNS rebinding) still names itself in `Host`, and one that posts here from elsewhere
/// names itself in `Origin`.
struct LocalNames: Sendable {
    private let authorities: [String]

    init(_ address: SocketAddress) {
        let own = address.host.contains(":") ? "[\(address.host)]" : address.host
        let names = ["localhost", "127.0.0.1", "[::1]", own]
        // Without a port a browser means 80.
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
