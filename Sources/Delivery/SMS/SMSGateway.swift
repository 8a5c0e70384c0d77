/// Somebody who takes text messages into the telephone networks.
public protocol SMSGateway: AnyObject, Sendable {
    /// As the settings call it.
    var name: String { get }
    /// On a loop. Answers within `limit` and a little.
    func send(_ message: SMSMessage, within limit: Duration) async -> GatewayOutcome
    /// What keeps it from taking anything, if that is known without asking.
    var fault: String? { get }
    func close() async
}

extension SMSGateway {
    public var fault: String? { nil }
}
