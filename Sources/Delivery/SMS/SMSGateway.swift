/// A service that accepts text messages and sends them into the mobile networks.
public protocol SMSGateway: AnyObject, Sendable {
    /// The name in the settings.
    var name: String { get }
    /// Sends a message. Must be called on a loop. Returns shortly after `limit` at the latest.
    func send(_ message: SMSMessage, within limit: Duration) async -> GatewayOutcome
    /// The fault that prevents all messages, if it is known without sending one.
    var fault: String? { get }
    func close() async
}

extension SMSGateway {
    public var fault: String? { nil }
}
