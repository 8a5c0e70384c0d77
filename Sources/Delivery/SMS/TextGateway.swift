/// Somebody who takes text messages into the telephone networks.
public protocol TextGateway: AnyObject, Sendable {
    /// As the settings call it.
    var name: String { get }
    /// On a loop. Answers within `limit` and a little.
    func send(_ message: TextMessage, within limit: Duration) async -> GatewayOutcome
    /// What keeps it from taking anything, if that is known without asking.
    var trouble: String? { get }
    func close() async
}

extension TextGateway {
    public var trouble: String? { nil }
}
