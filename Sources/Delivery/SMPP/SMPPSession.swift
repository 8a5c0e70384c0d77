import World

/// The state machine of an SMPP 3.4 session with one gateway, without socket and clock. The driver
/// reports each event with its time and carries out the resulting actions. The same events and the
/// same randomness give the same actions.
///
/// Phases: connecting, binding, bound, unbinding, closed; and idle while the session backs off
/// after a failure.
///
/// Invariant: every submitted ticket is settled exactly once. A part is sent again only if the
/// gateway answered that it is throttled or its queue is full. If the answer to a part is lost, the
/// message is ambiguous, since the gateway may have accepted it.
///
/// Failures:
/// - The connection of a bound session is lost: unanswered parts are ambiguous, and waiting parts
///   stay for the next connection.
/// - An attempt to connect or bind fails: all waiting messages are undeliverable, and so are new
///   ones until a bind succeeds.
/// - The gateway is silent: an enquire_link is sent after `enquireInterval`, and the session is
///   abandoned if nothing arrives in `responseTimeout`.
/// - A PDU has an impossible length: the session is abandoned, since the start of the next PDU is
///   unknown.
///
/// Tests: `SMPPSessionTests`, `SubmitTests` and `SessionSimulationTests`.
package struct SMPPSession {
    package typealias Ticket = UInt64

    package enum Action: Sendable, Equatable {
        /// Open a connection, and report `connected` or `disconnected`.
        case connect
        case write([UInt8])
        /// Close the connection, and report no more of its events.
        case disconnect
        case settled(Ticket, SMPPOutcome)
        case receipt(SMPPReceipt)
        /// The session is closed; this is its last action.
        case closed
    }

    package enum Phase: Sendable, Equatable {
        case idle(until: Instant)
        case connecting
        case binding
        case bound
        case unbinding
        case closed
    }

    package internal(set) var phase: Phase
    /// The reason why the session is not bound; nil while it is bound and before the first failure.
    package internal(set) var fault: String?

    let options: SMPPOptions
    private let randomness: any Randomness
    private var actions: [Action] = []
    var backoff = Backoff()
    private var reader = PDUReader()
    private var sequence: UInt32 = 0
    /// Whether the last attempt to bind failed. New messages then fail at once.
    var isDown = false
    var isClosing = false
    var queue: SubmitQueue
    var receipts = ReceiptDeduplicator()
    /// The time by which bind or unbind must be answered.
    var answerBy: Instant
    private var bindSequence: UInt32 = 0
    /// The time at which anything last arrived from the gateway.
    private var heardAt: Instant
    /// The time by which something must arrive after an enquire_link; nil if none is under way.
    private var enquiry: Instant?

    package init(_ options: SMPPOptions, randomness: any Randomness, now: Instant) {
        self.options = options
        self.randomness = randomness
        phase = .connecting
        queue = SubmitQueue(options)
        answerBy = now
        heardAt = now
        actions.append(.connect)
    }

    package mutating func takeActions() -> [Action] {
        defer { actions = [] }
        return actions
    }

    /// The time at which `tick` has something to do; nil if never.
    package var nextDeadline: Instant? {
        let ofPhase: Instant? =
            switch phase {
            case .idle(let until): until
            case .connecting, .closed: nil
            case .binding, .unbinding: answerBy
            case .bound: queue.nextDeadline(before: enquiry ?? heardAt + options.enquireInterval)
            }
        guard let giveUp = queue.earliestGiveUp else { return ofPhase }
        return min(ofPhase ?? giveUp, giveUp)
    }

    // MARK: Events

    package mutating func connected(_ now: Instant) {
        guard phase == .connecting else { return }
        reader = PDUReader()
        sequence = 0
        heardAt = now
        answerBy = now + options.responseTimeout
        phase = .binding
        bindSequence = nextSequence()
        let bind = PDU.Bind(systemID: options.systemID, password: options.password, systemType: options.systemType)
        write(PDU(.bind(options.mode, bind), sequence: bindSequence))
    }

    /// Handles the loss of the connection, or the failure to open one.
    package mutating func disconnected(_ reason: String, _ now: Instant) {
        switch phase {
        case .idle, .closed: break
        case .unbinding: finish()
        case .connecting, .binding, .bound: fall(reason, now)
        }
    }

    package mutating func submit(_ message: SMPPMessage, as ticket: Ticket, _ now: Instant) {
        do throws(Submission.Fault) {
            let submission = try Submission(message, options)
            if isClosing { throw .undeliverable("the connection to the gateway is being closed") }
            if isDown, let fault { throw .undeliverable(fault) }
            guard queue.take(submission, id: message.id, within: message.limit, as: ticket, now) else {
                settle([(ticket, .retry("\(options.queue) messages are already queued"))])
                return
            }
        } catch {
            settle([(ticket, error.outcome)])
            return
        }
        continueSession(now)
    }

    package mutating func received(_ bytes: some Sequence<UInt8>, _ now: Instant) {
        guard phase == .binding || phase == .bound || phase == .unbinding else { return }
        heardAt = now
        enquiry = nil
        reader.feed(bytes)
        do throws(PDUReader.Lost) {
            while let next = try reader.next() {
                handle(next, now)
                guard phase == .binding || phase == .bound || phase == .unbinding else { return }
            }
        } catch {
            write(PDU(.genericNack, sequence: 0, status: .wrongLength))
            abandon("the gateway sent \(error.description)", now)
        }
        continueSession(now)
    }

    package mutating func tick(_ now: Instant) {
        switch phase {
        case .idle(let until) where until <= now:
            phase = .connecting
            act(.connect)
        case .binding where answerBy <= now: abandon("no answer to the bind", now)
        case .unbinding where answerBy <= now: finish()
        case .bound: tickBound(now)
        default: break
        }
        let why = phase == .bound ? nil : fault ?? "not connected yet"
        settle(queue.fail(now, why))
        continueSession(now)
    }

    private mutating func tickBound(_ now: Instant) {
        settle(queue.overdue(now))
        if let enquiry {
            if enquiry <= now { abandon("no answer to the enquire_link", now) }
        } else if heardAt + options.enquireInterval <= now {
            enquiry = now + options.responseTimeout
            write(PDU(.enquireLink, sequence: nextSequence()))
        }
    }

    /// Closes the session: takes no more messages, waits for the answers to the parts that were
    /// sent, then unbinds.
    package mutating func close(_ now: Instant) {
        guard !isClosing else { return }
        isClosing = true
        settle(queue.dropWaiting("the connection to the gateway was closed"))
        if phase == .bound { continueSession(now) } else if phase != .closed { finish() }
    }

    // MARK: Actions

    func isAnswerToBind(_ sequence: UInt32) -> Bool { phase == .binding && sequence == bindSequence }

    mutating func bound(_ now: Instant) {
        phase = .bound
        fault = nil
        isDown = false
        continueSession(now)
    }

    /// Sends the parts that may be sent now, and unbinds when a closing session is idle.
    private mutating func continueSession(_ now: Instant) {
        guard phase == .bound else { return }
        while let part = queue.next(now) {
            let sequence = nextSequence()
            queue.sent(part, as: sequence, now)
            write(PDU(.submit(part.body), sequence: sequence))
        }
        guard isClosing, queue.isIdle else { return }
        phase = .unbinding
        answerBy = now + options.responseTimeout
        write(PDU(.unbind, sequence: nextSequence()))
    }

    /// Disconnects because of an error that the session found itself.
    mutating func abandon(_ reason: String, _ now: Instant) {
        act(.disconnect)
        disconnected(reason, now)
    }

    private mutating func fall(_ reason: String, _ now: Instant) {
        fault = reason
        enquiry = nil
        // A session that was bound may be bound again soon: its waiting messages stay queued.
        isDown = phase != .bound
        settle(queue.lost(reason))
        if isDown { settle(queue.dropWaiting(reason)) }
        if isClosing {
            finish()
        } else {
            phase = .idle(until: now + backoff.failed(randomness))
        }
    }

    mutating func finish() {
        phase = .closed
        settle(queue.lost("closed"))
        settle(queue.dropWaiting("closed"))
        act(.disconnect)
        act(.closed)
    }

    mutating func settle(_ outcomes: [(SMPPSession.Ticket, SMPPOutcome)]) {
        for (ticket, outcome) in outcomes { act(.settled(ticket, outcome)) }
    }

    mutating func write(_ pdu: PDU) { act(.write(pdu.bytes)) }

    mutating func act(_ action: Action) { actions.append(action) }

    private mutating func nextSequence() -> UInt32 {
        sequence = sequence == 0x7fff_ffff ? 1 : sequence + 1
        return sequence
    }
}
