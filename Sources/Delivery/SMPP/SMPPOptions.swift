import Bytes
import TLS

/// How a gateway is used, as agreed on with it.
public struct SMPPOptions: Sendable {
    public var host: String
    public var port: UInt16
    public var systemID: String
    public var password: Secret
    /// Nil: the line is not encrypted. Otherwise a context with `application: .unnamed`.
    public var tls: TLSClientContext?
    public var systemType = ""
    public var mode = BindMode.transceiver
    /// Of messages that name no sender. Nil: the gateway chooses it.
    public var source: SMPPAddress?
    /// Where the gateway wants receivers' numbers called something else than their form says.
    public var destinationKind: SMPPNumberKind?
    public var longTexts = LongTexts.header
    /// Submits that may be without an answer.
    public var window = 10
    /// Parts a second; 0: as many as the window lets through.
    public var throughput = 0
    /// Whether to ask what became of each part. A transmitter cannot be told.
    public var receipts = true
    /// When the gateway has said nothing for so long it is asked whether it is there.
    public var enquireInterval = Duration.seconds(30)
    /// For every answer: to bind, submit, enquire and unbind.
    public var responseTimeout = Duration.seconds(10)
    /// For resolving, connecting and TLS together.
    public var connectTimeout = Duration.seconds(10)
    /// How long a message waits at most for its turn.
    public var queueTimeout = Duration.seconds(15)
    /// Messages that may be under way or wait.
    public var queue = 1000
    /// Parts of one message.
    public var maxParts = 8

    public init(host: String, port: UInt16, systemID: String, password: Secret) {
        self.host = host
        self.port = port
        self.systemID = systemID
        self.password = password
    }

    /// How a text that is longer than a message travels.
    public enum LongTexts: String, Sendable, Equatable, CaseIterable {
        /// In parts, with a header of user data, which phones read.
        case header
        /// In parts, with the parameters `sar_…`, of which the gateway makes that header.
        case sar
        /// In one piece, as `message_payload`, which the gateway cuts.
        case payload
    }

    var wantsReceipts: Bool { receipts && mode == .transceiver }

    /// What is wrong with them, in words for an operator; nil: nothing.
    public var fault: String? {
        func fits(_ text: some Collection<UInt8>, _ limit: Int) -> Bool {
            text.count <= limit && text.allSatisfy { (0x20...0x7e).contains($0) }
        }
        if host.isEmpty { return "host must be named" }
        if port == 0 { return "port must be 1 to 65535" }
        if systemID.isEmpty || !fits(systemID.utf8, 64) { return "system id must be 1 to 64 characters of ASCII" }
        if !fits(password.reveal(), 64) { return "password must be at most 64 characters of ASCII" }
        if !fits(systemType.utf8, 12) { return "system type must be at most 12 characters of ASCII" }
        if let source, !fits(source.text.utf8, 20) { return "source must be at most 20 characters of ASCII" }
        if !(1...1000).contains(window) { return "window must be 1 to 1000" }
        if !(0...10_000).contains(throughput) { return "throughput must be 0 (no limit) to 10000 parts a second" }
        if !(1...100_000).contains(queue) { return "queue must be 1 to 100000 messages" }
        if !(1...255).contains(maxParts) { return "parts must be 1 to 255" }
        let times: [(String, Duration)] = [
            ("enquire interval", enquireInterval), ("response timeout", responseTimeout),
            ("connect timeout", connectTimeout), ("patience", queueTimeout),
        ]
        for (name, time) in times where time < .seconds(1) || time > .seconds(3600) {
            return "\(name) must be 1 second to 1 hour"
        }
        return nil
    }
}
