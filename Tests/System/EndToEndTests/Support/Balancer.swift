import Glibc
import TestSupport

/// HAProxy with deploy/haproxy.cfg, in front of one relay.
final class Balancer: Sendable {
    static let program = "/usr/sbin/haproxy"
    static let isInstalled = access(program, X_OK) == 0
    static let settings =
        #filePath.split(separator: "/").dropLast(5).map { "/\($0)" }.joined() + "/deploy/haproxy.cfg"

    /// The source address of its connections to the relay. Direct clients have another address.
    static let address = "127.0.0.2"

    var port: UInt16 { reserved.port }
    private let reserved: FreePort
    private let directory: TemporaryDirectory
    private let child: Child
    private let reaper: ProcessReaper

    init(before relay: RunningRelay) throws {
        reserved = try FreePort()
        directory = try TemporaryDirectory()
        child = try Child(
            Self.program, ["-db", "-f", Self.settings],
            environment: [
                "TWOEFAY_FRONT": "127.0.0.1:\(reserved.port)", "TWOEFAY_RELAY1": "127.0.0.1:\(relay.port)",
                "TWOEFAY_RELAY2": "127.0.0.1:\(relay.port)", "TWOEFAY_SOURCE": Self.address,
                "TWOEFAY_HOST": "localhost", "TWOEFAY_CA": relay.file("ca.pem"), "TWOEFAY_CONNECTIONS": "100",
                "TWOEFAY_PROXY_SOCKET": directory("socket"),
            ])
        reaper = try ProcessReaper(of: child.pid)
    }

    deinit {
        child.signal(SIGKILL)
        reaper.dismiss()
    }
}

extension APIClient {
    /// Returns the client with its connections through that port, from that address of this machine.
    func through(_ port: UInt16, from address: String? = nil) -> APIClient {
        var client = self
        client.caller.port = port
        client.caller.address = address
        return client
    }
}
