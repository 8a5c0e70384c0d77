import Bytes
import TestSupport
import Testing
import World

@testable import SMPP

/// A session, the gateway's side of the connection, and a clock that only the test moves.
struct Bench {
    var session: SMPPSession
    var options: SMPPOptions
    var now = Instant(nanoseconds: 1)
    private var reader = PDUReader()
    private var lastTicket: UInt64 = 0
    /// The PDUs that the test has not read yet.
    var sent: [PDU] = []
    var settled: [UInt64: SMPPOutcome] = [:]
    var receipts: [SMPPReceipt] = []
    var connects = 0
    var disconnects = 0
    var isClosed = false

    init(_ change: (inout SMPPOptions) -> Void = { _ in }) {
        options = SMPPOptions(host: "gateway.test", port: 2775, systemID: "relay", password: Secret(utf8: "secret08"))
        change(&options)
        session = SMPPSession(options, randomness: SeededRandomness(seed: 1), now: now)
        look()
    }

    mutating func look() {
        for action in session.takeActions() {
            switch action {
            case .connect: connects += 1
            case .disconnect:
                disconnects += 1
                reader = PDUReader()
            case .write(let bytes):
                reader.feed(bytes)
                while case .pdu(let pdu)? = try? reader.next() { sent.append(pdu) }
            case .settled(let ticket, let outcome):
                let earlier = settled.updateValue(outcome, forKey: ticket)
                #expect(earlier == nil, "two outcomes of one message")
            case .receipt(let receipt): receipts.append(receipt)
            case .closed: isClosed = true
            }
        }
    }

    mutating func takeSent() -> [PDU] {
        defer { sent = [] }
        return sent
    }

    mutating func answer(_ body: PDU.Body, to sequence: UInt32, _ status: SMPPStatus = .ok) {
        session.received(PDU(body, sequence: sequence, status: status).bytes, now)
        look()
    }

    mutating func accept(_ pdu: PDU, as messageID: String) {
        answer(.submitResponse(messageID: messageID), to: pdu.sequence)
    }

    mutating func connect() {
        session.connected(now)
        look()
    }

    mutating func bind() {
        connect()
        let bind = takeSent()
        #expect(bind.count == 1)
        answer(.bindResponse(options.mode, systemID: "gw"), to: bind.first?.sequence ?? 0)
        #expect(session.phase == .bound)
    }

    @discardableResult mutating func submit(
        _ text: String = "Code 123456", id: String? = nil, within limit: Duration? = nil
    ) -> UInt64 {
        lastTicket += 1
        let message = SMPPMessage(id: id ?? "id\(lastTicket)", to: "+491701234567", text: text, limit: limit)
        session.submit(message, as: lastTicket, now)
        look()
        return lastTicket
    }

    /// Moves the clock, with a tick at each deadline on the way.
    mutating func pass(_ duration: Duration) {
        let end = now + duration
        while let next = session.nextDeadline, next <= end {
            now = max(now, next)
            session.tick(now)
            look()
        }
        now = end
    }

    mutating func lose(_ reason: String = "connection reset") {
        session.disconnected(reason, now)
        look()
    }
}

/// Returns the messages among the PDUs.
func submits(_ pdus: [PDU]) -> [ShortMessage] {
    pdus.compactMap { if case .submit(let message) = $0.body { message } else { nil } }
}
