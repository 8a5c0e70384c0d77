import Domain
import EventLoop
import HTTP2
import Log
import Relay

/// The end of connections, on every loop, whose website or phone was revoked.
enum RevokedConnections {
    static func end(_ revoked: RevokedIdentity, on servers: [LoopBound<HTTP2Server>], log: Log) {
        let (name, keys): (String, [[UInt8]])
        switch revoked {
        case .website(let website, let left): (name, keys) = ("twoefay:website:\(website)", left)
        case .phone(let device): (name, keys) = (Relay.deviceURI + device.text, [])
        }
        for server in servers {
            server.loop.post {
                let count = server.value.endConnections(named: name, keeping: keys)
                if count > 0 { log.notice("connection.revoked", [.name: name, .count: count]) }
            }
        }
    }
}
