import EventLoop
import Log
import SMPP
import World

/// A gateway that speaks SMPP 3.4, over one persistent connection.
public final class SMPPGateway: SMSGateway {
    public let name: String
    private let client: SMPPClient
    private let limit: Duration

    /// Creates the gateway and starts to connect.
    ///
    /// - Parameter limit: the time for each message; half of it is for the queue, half for the
    ///   answer.
    public init(
        name: String, options: SMPPOptions, limit: Duration, loop: EventLoop, randomness: any Randomness, log: Log
    ) {
        self.name = name
        self.limit = limit
        var options = options
        options.queueTimeout = limit / 2
        options.responseTimeout = limit / 2
        client = SMPPClient(options, loop: loop, randomness: randomness) { receipt in
            log.info(
                "sms.receipt",
                [.gateway: name, .message: receipt.id, .state: receipt.state.rawValue, .code: receipt.error])
        }
    }

    public var fault: String? { client.fault }

    public func send(_ message: SMSMessage, within limit: Duration) async -> GatewayOutcome {
        let submitted = SMPPMessage(
            id: message.id, to: message.to, text: message.text, limit: min(limit, self.limit))
        return switch await client.send(submitted) {
        case .accepted: .accepted
        case .refused(let reason): .refused(reason)
        case .retry(let reason): .busy(nil, reason)
        case .undeliverable(let reason): client.fault == nil ? .unsuited(reason) : .down(reason)
        case .ambiguous(let reason): .ambiguous(reason)
        }
    }

    public func close() async { await client.close() }
}
