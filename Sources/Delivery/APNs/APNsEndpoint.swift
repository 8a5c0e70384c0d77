/// Where a push service that speaks as Apple's does is found.
public struct APNsEndpoint: Sendable, Hashable {
    public let host: String
    public let port: UInt16

    public static let production = APNsEndpoint(host: "api.push.apple.com")
    public static let sandbox = APNsEndpoint(host: "api.sandbox.push.apple.com")

    public init(host: String, port: UInt16 = 443) {
        self.host = host
        self.port = port
    }

    /// Apple keeps the tokens of apps from Xcode on a host of their own. Any other service takes both kinds.
    func serving(_ environment: APNsNotification.Environment) -> APNsEndpoint {
        guard environment == .sandbox, host == Self.production.host else { return self }
        return APNsEndpoint(host: Self.sandbox.host, port: port)
    }

    /// As `:authority` has it.
    var authority: String {
        let host = host.contains(":") ? "[\(host)]" : host
        return port == 443 ? host : "\(host):\(port)"
    }
}
