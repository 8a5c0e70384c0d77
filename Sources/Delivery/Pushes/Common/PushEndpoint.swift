/// The host and port of Apple's push service, or of a service with the same protocol.
public struct PushEndpoint: Sendable, Hashable {
    public let host: String
    public let port: UInt16

    public static let production = PushEndpoint(host: "api.push.apple.com")
    public static let sandbox = PushEndpoint(host: "api.sandbox.push.apple.com")

    public init(host: String, port: UInt16 = 443) {
        self.host = host
        self.port = port
    }

    /// Returns the endpoint that serves the environment. Apple serves device tokens of apps from
    /// Xcode (the sandbox) on a separate host. Any other service takes both kinds.
    func serving(_ environment: APNsNotification.Environment) -> PushEndpoint {
        guard environment == .sandbox, host == Self.production.host else { return self }
        return PushEndpoint(host: Self.sandbox.host, port: port)
    }

    /// The value of `:authority`; the port is left out if it is 443.
    var authority: String {
        let host = host.contains(":") ? "[\(host)]" : host
        return port == 443 ? host : "\(host):\(port)"
    }
}
