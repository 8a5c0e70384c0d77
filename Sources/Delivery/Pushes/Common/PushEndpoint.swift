/// The host and port of a push service.
public struct PushEndpoint: Sendable, Hashable {
    public let host: String
    public let port: UInt16

    public init(host: String, port: UInt16 = 443) {
        self.host = host
        self.port = port
    }

    /// The value of `:authority`; the port is left out if it is 443.
    var authority: String {
        let host = host.contains(":") ? "[\(host)]" : host
        return port == 443 ? host : "\(host):\(port)"
    }
}
