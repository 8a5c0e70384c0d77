import World

/// What a session with a gateway does, without a socket and without a clock: it is told what happened and when, and says what is
/// to be done. Under the same randomness the same follows.
package struct SMPPSession {
    package typealias Ticket = UInt64

    package enum Action: Sendable, Equatable {
        /// Ends in `connected` or `disconnected`.
        case connect
        case write([UInt8])
        /// Nothing of this connection is told to the session any more.
        case disconnect
        case settled(Ticket, SMPPOutcome)
        case receipt(SMPPReceipt)
        /// The last one.
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
    /// Nil while it is bound, and until something has gone wrong.
    package internal(set) var fault: String?

    let options: SMPPOptions
    private let randomness: any Randomness
    private var actions: [Action] = []
    var backoff = Backoff()
    private var reader = PDUReader()
    private var sequence: UInt32 = 0
    /// The last attempt to bind has failed: what comes now is not kept waiting for the next.
    var isDown = false
    var isClosing = false
    var queue: SubmitQueue
    var receipts = ReceiptDeduplicator()
    /// Until when bind or unbind must be answered.
    var answerBy: Instant
    private var bindSequence: UInt32 = 0
    /// The other side is there as long as it says something, whatever it is.
    private var heardAt: Instant
    /// An enquiry is under way, and must be answered until then.
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

    /// When `tick` has something to do next.
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

    // MARK: What happens

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

    /// The connection is gone, or could not be had.
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
                settle([(ticket, .retry("\(options.queue) messages wait already"))])
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
            if enquiry <= now { abandon("the gateway is silent", now) }
        } else if heardAt + options.enquireInterval <= now {
            enquiry = now + options.responseTimeout
            write(PDU(.enquireLink, sequence: nextSequence()))
        }
    }

    /// Takes no more messages. Those under way are waited for, then the session is ended in order.
    package mutating func close(_ now: Instant) {
        guard !isClosing else { return }
        isClosing = true
        settle(queue.dropWaiting("the connection to the gateway was closed"))
        if phase == .bound { continueSession(now) } else if phase != .closed { finish() }
    }

    // MARK: What follows

    func isAnswerToBind(_ sequence: UInt32) -> Bool { phase == .binding && sequence == bindSequence }

    mutating func bound(_ now: Instant) {
        phase = .bound
        fault = nil
        isDown = false
        continueSession(now)
    }

    /// Sends what may be sent now.
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

    /// Of our own accord.
    mutating func abandon(_ reason: String, _ now: Instant) {
        act(.disconnect)
        disconnected(reason, now)
    }

    private mutating func fall(_ reason: String, _ now: Instant) {
        fault = reason
        enquiry = nil
        // A session that stood may stand again in a moment: what has not been sent waits for that.
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
