import Bytes
import TLS

/// The settings of one gateway, as agreed with its operator.
public struct SMPPOptions: Sendable {
    public var host: String
    public var port: UInt16
    public var systemID: String
    public var password: Secret
    /// The TLS context, with `application: .unnamed`; nil means no encryption.
    public var tls: TLSClientContext?
    public var systemType = ""
    public var mode = BindMode.transceiver
    /// The sender of messages that name none; nil lets the gateway choose.
    public var source: SMPPAddress?
    /// The type and plan of receivers' numbers, if the gateway requires others than the form of the
    /// number implies.
    public var destinationKind: SMPPNumberKind?
    public var longTexts = LongTexts.header
    /// The maximum number of unanswered submits.
    public var window = 10
    /// Parts a second; 0 means no limit except the window.
    public var throughput = 0
    /// Whether to request a receipt for each part. A transmitter receives none.
    public var receipts = true
    /// The silence after which an enquire_link checks the gateway.
    public var enquireInterval = Duration.seconds(30)
    /// The time for every answer: to bind, submit, enquire_link and unbind.
    public var responseTimeout = Duration.seconds(10)
    /// The time for resolving, connecting and TLS together.
    public var connectTimeout = Duration.seconds(10)
    /// The longest time that a message waits in the queue.
    public var queueTimeout = Duration.seconds(15)
    /// The maximum number of messages under way or waiting.
    public var queue = 1000
    /// The maximum number of parts of one message.
    public var maxParts = 8

    public init(host: String, port: UInt16, systemID: String, password: Secret) {
        self.host = host
        self.port = port
        self.systemID = systemID
        self.password = password
    }

    /// The method for texts that are too long for one message.
    public enum LongTexts: String, Sendable, Equatable, CaseIterable {
        /// In parts, each with a user data header that phones read.
        case header
        /// In parts, with `sar_…` parameters, from which the gateway makes the user data header.
        case sar
        /// In one piece as `message_payload`, which the gateway splits.
        case payload
    }

    var wantsReceipts: Bool { receipts && mode == .transceiver }

    /// The error in the options, in words for an operator; nil if they are valid.
    public var fault: String? {
        func fits(_ text: some Collection<UInt8>, _ limit: Int) -> Bool {
            text.count <= limit && text.allSatisfy { (0x20...0x7e).contains($0) }
        }
        if host.isEmpty { return "host must not be empty" }
        if port == 0 { return "port must be 1 to 65535" }
        if systemID.isEmpty || !fits(systemID.utf8, 64) { return "system id must be 1 to 64 ASCII characters" }
        if !fits(password.reveal(), 64) { return "password must be at most 64 ASCII characters" }
        if !fits(systemType.utf8, 12) { return "system type must be at most 12 ASCII characters" }
        if let source, !fits(source.text.utf8, 20) { return "source must be at most 20 ASCII characters" }
        if !(1...1000).contains(window) { return "window must be 1 to 1000" }
        if !(0...10_000).contains(throughput) { return "throughput must be 0 (no limit) to 10000 parts per second" }
        if !(1...100_000).contains(queue) { return "queue must be 1 to 100000 messages" }
        if !(1...255).contains(maxParts) { return "parts must be 1 to 255" }
        let times: [(String, Duration)] = [
            ("enquire interval", enquireInterval), ("response timeout", responseTimeout),
            ("connect timeout", connectTimeout), ("queue timeout", queueTimeout),
        ]
        for (name, time) in times where time < .seconds(1) || time > .seconds(3600) {
            return "\(name) must be 1 second to 1 hour"
        }
        return nil
    }
}
