import World

/// The parts of all messages that wait or are under way. A part is one submit_sm of a message. The
/// queue decides which part is sent next, and derives the outcome of a message from the outcomes of
/// its parts.
///
/// Three limits apply: the window of unanswered parts, the throughput in parts a second, and the
/// pause after the gateway answered that it is overloaded. After a part fails for good, the other
/// parts of its message are not sent.
struct SubmitQueue {
    struct Part {
        let ticket: SMPPSession.Ticket
        let index: Int
        let body: ShortMessage
    }

    private struct Sent {
        let part: Part
        let at: Instant
        let answerBy: Instant
    }

    private struct Progress {
        let id: String
        var waiting: Int
        var inFlight = 0
        var messageIDs: [String]
        /// The most severe outcome of a part so far.
        var verdict: SMPPOutcome?
        let giveUpAt: Instant
        /// The deadline of the message; nil uses `SMPPOptions.responseTimeout` for each part.
        let end: Instant?

        /// Whether no more parts are sent, because one failed.
        var isLost: Bool { (verdict?.rank ?? 0) > SMPPOutcome.ambiguous("").rank }
        var isOver: Bool { inFlight == 0 && (waiting == 0 || isLost) }
        var outcome: SMPPOutcome { verdict ?? .accepted(messageIDs) }

        mutating func record(_ outcome: SMPPOutcome) {
            if outcome.rank > (verdict?.rank ?? -1) { verdict = outcome }
        }
    }

    private static let firstPause = Duration.seconds(1)
    private static let longestPause = Duration.seconds(16)

    private let options: SMPPOptions
    private var messages: [SMPPSession.Ticket: Progress] = [:]
    private var queue: [Part] = []
    private var queueStart = 0
    /// Parts that the gateway put off because it was overloaded; they are sent before all others.
    private var again: [Part] = []
    private var inFlight: [UInt32: Sent] = [:]
    private var nextTurn = Instant(nanoseconds: .min)
    private var pause = SubmitQueue.firstPause
    private var pausedUntil = Instant(nanoseconds: .min)
    /// A lower bound for the times at which waiting messages are given up; nil if none waits.
    private(set) var earliestGiveUp: Instant?

    init(_ options: SMPPOptions) { self.options = options }

    var isIdle: Bool { messages.isEmpty }

    private var hasWaiting: Bool { !again.isEmpty || queueStart < queue.count }

    func nextDeadline(before limit: Instant) -> Instant {
        var next = limit
        for sent in inFlight.values { next = min(next, sent.answerBy) }
        if hasWaiting, inFlight.count < options.window { next = min(next, max(nextTurn, pausedUntil)) }
        return next
    }

    // MARK: Queueing

    /// Queues the parts of a message. Returns false if the queue is full.
    mutating func take(
        _ submission: Submission, id: String, within limit: Duration?, as ticket: SMPPSession.Ticket, _ now: Instant
    ) -> Bool {
        guard messages.count < options.queue else { return false }
        let count = submission.parts.count
        let giveUpAt = now + (limit.map { $0 / 2 } ?? options.queueTimeout)
        messages[ticket] = Progress(
            id: id, waiting: count, messageIDs: Array(repeating: "", count: count), giveUpAt: giveUpAt,
            end: limit.map { now + $0 })
        earliestGiveUp = min(earliestGiveUp ?? giveUpAt, giveUpAt)
        for (index, body) in submission.parts.enumerated() {
            queue.append(Part(ticket: ticket, index: index, body: body))
        }
        return true
    }

    // MARK: Sending

    /// Returns the next part to send; nil if none may be sent now.
    mutating func next(_ now: Instant) -> Part? {
        guard inFlight.count < options.window, nextTurn <= now, pausedUntil <= now else { return nil }
        while let part = pop() {
            if let message = messages[part.ticket], !message.isLost { return part }
        }
        return nil
    }

    private mutating func pop() -> Part? {
        if !again.isEmpty { return again.removeFirst() }
        guard queueStart < queue.count else { return nil }
        defer {
            queueStart += 1
            if queueStart == queue.count || queueStart > 1024 {
                queue.removeFirst(queueStart)
                queueStart = 0
            }
        }
        return queue[queueStart]
    }

    mutating func sent(_ part: Part, as sequence: UInt32, _ now: Instant) {
        messages[part.ticket]?.waiting -= 1
        messages[part.ticket]?.inFlight += 1
        let answerBy = messages[part.ticket]?.end ?? now + options.responseTimeout
        inFlight[sequence] = Sent(part: part, at: now, answerBy: answerBy)
        guard options.throughput > 0 else { return }
        nextTurn = max(nextTurn, now) + .seconds(1) / options.throughput
    }

    // MARK: Outcomes

    /// Records the answer to a part.
    ///
    /// - Returns: the message, with its outcome once that is known; nil if no part waits for this
    ///   answer.
    mutating func answered(
        _ sequence: UInt32, _ status: SMPPStatus, messageID: String, _ now: Instant
    ) -> (ticket: SMPPSession.Ticket, id: String, outcome: SMPPOutcome?)? {
        guard let sent = inFlight.removeValue(forKey: sequence) else { return nil }
        let part = sent.part
        guard let message = messages[part.ticket] else { return nil }
        messages[part.ticket]?.inFlight -= 1
        switch status.meaning {
        case .accepted:
            pause = Self.firstPause
            messages[part.ticket]?.messageIDs[part.index] = messageID
        case .refused: messages[part.ticket]?.record(.refused(status.description))
        case .later: messages[part.ticket]?.record(.retry(status.description))
        case .ours: messages[part.ticket]?.record(.undeliverable(status.description))
        case .slower:
            slowDown(sent.at, now)
            messages[part.ticket]?.waiting += 1
            again.append(part)
            earliestGiveUp = min(earliestGiveUp ?? message.giveUpAt, message.giveUpAt)
        }
        return (part.ticket, message.id, concluded(part.ticket))
    }

    /// Starts a pause and doubles the next one. Parts that were sent before the last pause ended do
    /// not count: they do not show that it was too short.
    private mutating func slowDown(_ sentAt: Instant, _ now: Instant) {
        guard sentAt >= pausedUntil else { return }
        pausedUntil = now + pause
        pause = min(pause * 2, Self.longestPause)
    }

    private mutating func concluded(_ ticket: SMPPSession.Ticket) -> SMPPOutcome? {
        guard let message = messages[ticket], message.isOver else { return nil }
        messages[ticket] = nil
        return message.outcome
    }

    /// Gives up the parts whose answer is overdue; returns the messages that end with this.
    mutating func overdue(_ now: Instant) -> [(SMPPSession.Ticket, SMPPOutcome)] {
        inFlight.filter { $0.value.answerBy <= now }.sorted { $0.key < $1.key }.flatMap { sequence, sent in
            unanswered([sequence], "no answer in \((sent.answerBy - sent.at).components.seconds) s")
        }
    }

    /// Handles a lost connection: all parts under way are ambiguous.
    mutating func lost(_ reason: String) -> [(SMPPSession.Ticket, SMPPOutcome)] {
        unanswered(inFlight.keys.sorted(), reason)
    }

    private mutating func unanswered(
        _ sequences: [UInt32], _ reason: String
    ) -> [(SMPPSession.Ticket, SMPPOutcome)] {
        var outcomes: [(SMPPSession.Ticket, SMPPOutcome)] = []
        for sequence in sequences {
            guard let ticket = inFlight.removeValue(forKey: sequence)?.part.ticket else { continue }
            messages[ticket]?.inFlight -= 1
            messages[ticket]?.record(.ambiguous(reason))
            if let outcome = concluded(ticket) { outcomes.append((ticket, outcome)) }
        }
        return outcomes
    }

    /// Gives up the messages that waited too long. The reason is the fault of the connection, if
    /// there is one.
    mutating func fail(_ now: Instant, _ fault: String?) -> [(SMPPSession.Ticket, SMPPOutcome)] {
        guard let earliestGiveUp, earliestGiveUp <= now else { return [] }
        return drop(fault.map(SMPPOutcome.undeliverable) ?? .retry("queued for too long")) { $0.giveUpAt <= now }
    }

    /// Gives up all waiting messages as undeliverable.
    mutating func dropWaiting(_ reason: String) -> [(SMPPSession.Ticket, SMPPOutcome)] {
        drop(.undeliverable(reason)) { _ in true }
    }

    private mutating func drop(
        _ outcome: SMPPOutcome, _ isMeant: (Progress) -> Bool
    ) -> [(SMPPSession.Ticket, SMPPOutcome)] {
        var outcomes: [(SMPPSession.Ticket, SMPPOutcome)] = []
        earliestGiveUp = nil
        for (ticket, message) in messages.sorted(by: { $0.key < $1.key }) where message.waiting > 0 && !message.isLost {
            if isMeant(message) {
                messages[ticket]?.record(outcome)
                if let outcome = concluded(ticket) { outcomes.append((ticket, outcome)) }
            } else {
                earliestGiveUp = min(earliestGiveUp ?? message.giveUpAt, message.giveUpAt)
            }
        }
        queue.removeFirst(queueStart)
        queueStart = 0
        queue.removeAll { messages[$0.ticket]?.isLost ?? true }
        again.removeAll { messages[$0.ticket]?.isLost ?? true }
        return outcomes
    }
}
