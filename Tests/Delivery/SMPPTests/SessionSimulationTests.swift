import Bytes
import TestSupport
import Testing
import World

@testable import SMPP

/// A session with a gateway and a network whose behavior a seed determines, in virtual time.
private struct Simulation {
    private enum Event {
        case submit(UInt64)
        case connected(Int)
        case failed(Int)
        case answer(Int, PDU, accepts: UInt64?)
        case cut(Int)
    }

    private struct Sent {
        let sequence: UInt32
        let at: Instant
    }

    let options: SMPPOptions
    private var chance: SeededRandomness
    private var session: SMPPSession
    private var now = Instant(nanoseconds: 1)
    private var events: [(at: Instant, number: Int, event: Event)] = []
    private var eventCount = 0
    private var connection = 0
    private var isConnected = false
    private var reader = PDUReader()
    private var isBound = false
    private var unanswered: [Sent] = []
    private var messageCount = 0
    private var submittedAt: [UInt64: Instant] = [:]
    /// The ids that the gateway assigned to each message, even if their answers were lost.
    private var given: [UInt64: Set<String>] = [:]
    private(set) var outcomes: [UInt64: SMPPOutcome] = [:]
    private(set) var isClosed = false
    /// The messages of one segment, and those among them that were reported as not accepted.
    private var short: Set<UInt64> = []
    private var untaken: Set<UInt64> = []

    /// Messages that were reported as not accepted, although the gateway has accepted them.
    var wronglyUntaken: Set<UInt64> { untaken.filter { given[$0] != nil } }

    init(seed: UInt64) {
        chance = SeededRandomness(seed: seed)
        var options = SMPPOptions(
            host: "gateway.test", port: 2775, systemID: "relay", password: Secret(utf8: "secret08"))
        options.window = Int.random(in: 1...5, using: &chance)
        options.throughput = Bool.random(using: &chance) ? 0 : 5
        options.queue = 40
        self.options = options
        session = SMPPSession(options, randomness: SeededRandomness(seed: seed &+ 1), now: now)
    }

    private mutating func happens(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &chance) < percent }

    private mutating func duration(upTo seconds: Double) -> Duration {
        .milliseconds(Int64.random(in: 0...Int64(seconds * 1000), using: &chance))
    }

    private mutating func plan(_ event: Event, after duration: Duration) {
        eventCount += 1
        events.append((now + duration, eventCount, event))
    }

    mutating func run(messages: Int) {
        for number in 1...messages { plan(.submit(UInt64(number)), after: duration(upTo: 240)) }
        look()
        while true {
            let next = events.min { ($0.at, $0.number) < ($1.at, $1.number) }
            let tick = session.nextDeadline
            guard let at = [next?.at, tick].compactMap({ $0 }).min() else { break }
            now = max(now, at)
            if let next, next.at <= now {
                events.removeAll { $0.number == next.number }
                happen(next.event)
            } else {
                session.tick(now)
                // A deadline in the past would be requested again without end.
                if let next = session.nextDeadline, next <= now { Issue.record("a deadline that is over") }
            }
            look()
            if outcomes.count == messages, session.phase != .closed, session.phase != .unbinding { session.close(now) }
            look()
            if isClosed { break }
        }
    }

    private mutating func happen(_ event: Event) {
        switch event {
        case .submit(let ticket):
            submittedAt[ticket] = now
            let text = String(repeating: "x", count: happens(70) ? 20 : Int.random(in: 1...400, using: &chance))
            if text.count <= 160 { short.insert(ticket) }
            let message = SMPPMessage(id: "\(ticket)", to: "+49\(1_000_000 + ticket)", text: text)
            session.submit(message, as: ticket, now)
        case .connected(let number) where number == connection:
            isConnected = true
            session.connected(now)
        case .failed(let number) where number == connection: session.disconnected("refused", now)
        case .cut(let number) where number == connection && isConnected:
            hangUp()
            session.disconnected("reset", now)
        case .answer(let number, let pdu, let ticket):
            // The gateway has accepted it, even if its answer is lost.
            if let ticket, case .submitResponse(let id) = pdu.body { given[ticket, default: []].insert(id) }
            guard number == connection, isConnected else { return }
            unanswered.removeAll { $0.sequence == pdu.sequence }
            if case .bindResponse = pdu.body, pdu.status == .ok { isBound = true }
            session.received(pdu.bytes, now)
        default: break
        }
    }

    private mutating func hangUp() {
        isConnected = false
        isBound = false
        connection += 1
        reader = PDUReader()
        unanswered = []
    }

    private mutating func look() {
        for action in session.takeActions() {
            switch action {
            case .connect:
                connection += 1
                plan(happens(75) ? .connected(connection) : .failed(connection), after: duration(upTo: 3))
            case .disconnect: hangUp()
            case .write(let bytes):
                reader.feed(bytes)
                while case .pdu(let pdu)? = try? reader.next() { heard(pdu) }
            case .settled(let ticket, let outcome): check(ticket, outcome)
            case .receipt: Issue.record("nobody sent a receipt")
            case .closed: isClosed = true
            }
        }
    }

    private mutating func heard(_ pdu: PDU) {
        switch pdu.body {
        case .bind(let mode, _):
            guard happens(90) else { return }
            let status = happens(80) ? SMPPStatus.ok : .bindFailed
            reply(PDU(.bindResponse(mode, systemID: "gw"), sequence: pdu.sequence, status: status), within: 2)
        case .enquireLink: if happens(80) { reply(PDU(.enquireLinkResponse, sequence: pdu.sequence), within: 2) }
        case .unbind: if happens(80) { reply(PDU(.unbindResponse, sequence: pdu.sequence), within: 2) }
        case .submit(let message): submitted(message, pdu.sequence)
        default: break
        }
    }

    private mutating func submitted(_ message: ShortMessage, _ sequence: UInt32) {
        if !isBound { Issue.record("not bound") }
        unanswered.append(Sent(sequence: sequence, at: now))
        let timeout = options.responseTimeout
        let young = unanswered.count { [now] in now - $0.at < timeout }
        if young > options.window { Issue.record("\(young) under way") }
        guard let number = UInt64(message.destination.text.dropFirst(2)) else {
            Issue.record("a number that nobody named")
            return
        }
        let ticket = number - 1_000_000
        messageCount += 1
        let accepted = PDU(.submitResponse(messageID: "m\(messageCount)"), sequence: sequence)
        switch Int.random(in: 0..<100, using: &chance) {
        case 0..<75: reply(accepted, within: 1.5, accepts: ticket)
        case 75..<80: reply(accepted, within: 14, accepts: ticket)
        case 80..<84: given[ticket, default: []].insert("m\(messageCount)")
        case 84..<90: reply(PDU(.submitResponse(messageID: ""), sequence: sequence, status: .throttled), within: 1)
        case 90..<93: reply(PDU(.submitResponse(messageID: ""), sequence: sequence, status: .systemError), within: 1)
        case 93..<96:
            reply(PDU(.submitResponse(messageID: ""), sequence: sequence, status: .wrongDestination), within: 1)
        case 96..<98: reply(PDU(.genericNack, sequence: sequence, status: .wrongLength), within: 1)
        default: plan(.cut(connection), after: duration(upTo: 1))
        }
    }

    private mutating func reply(_ pdu: PDU, within seconds: Double, accepts ticket: UInt64? = nil) {
        plan(.answer(connection, pdu, accepts: ticket), after: duration(upTo: seconds))
    }

    private mutating func check(_ ticket: UInt64, _ outcome: SMPPOutcome) {
        let earlier = outcomes.updateValue(outcome, forKey: ticket)
        #expect(earlier == nil, "two outcomes of one message")
        let waited = now - (submittedAt[ticket] ?? now)
        #expect(waited <= options.queueTimeout + options.responseTimeout)
        let ids = given[ticket] ?? []
        switch outcome {
        case .accepted(let named):
            #expect(!named.isEmpty && ids.isSuperset(of: named) && Set(named).count == named.count)
        case .ambiguous: break
        case .refused, .retry, .undeliverable: if short.contains(ticket) { untaken.insert(ticket) }
        }
    }
}

@Suite struct SessionSimulationTests {
    @Test(arguments: 1...24) func everyMessageHasOneOutcomeUnderRandomFaults(seed: UInt64) {
        var simulation = Simulation(seed: seed)
        simulation.run(messages: 100)
        #expect(simulation.outcomes.count == 100)
        #expect(simulation.isClosed)
        #expect(simulation.wronglyUntaken.isEmpty)
    }

    /// A check of the seeds: together they cause every kind of outcome.
    @Test func simulationCoversAllOutcomes() {
        var kinds: Set<Int> = []
        for seed in 1...6 as ClosedRange<UInt64> {
            var simulation = Simulation(seed: seed)
            simulation.run(messages: 100)
            kinds.formUnion(simulation.outcomes.values.map(\.rank))
        }
        #expect(kinds == [0, 1, 2, 3, 4])
    }
}
