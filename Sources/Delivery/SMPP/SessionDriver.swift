import EventLoop
import World

/// Connects a session to its socket and its clock. Used only on its loop.
final class SessionDriver {
    private let loop: EventLoop
    private let options: SMPPOptions
    private let shared: SMPPClient.SharedState
    private var session: SMPPSession
    private var wire: Transport?
    /// The ordinal of the current connection; events of earlier ones are ignored.
    private var connection = 0
    private var timer: (id: TimerID, at: Instant)?
    private var lastTicket: SMPPSession.Ticket = 0
    private var waiting: [SMPPSession.Ticket: (SMPPOutcome) -> Void] = [:]
    private var closers: [() -> Void] = []
    private var isActing = false

    init(_ options: SMPPOptions, loop: EventLoop, randomness: any Randomness, shared: SMPPClient.SharedState) {
        self.loop = loop
        self.options = options
        self.shared = shared
        session = SMPPSession(options, randomness: randomness, now: loop.time.instant())
    }

    func start() { handle { _, _ in } }

    func send(_ message: SMPPMessage, _ settled: @escaping (SMPPOutcome) -> Void) {
        lastTicket += 1
        let ticket = lastTicket
        waiting[ticket] = settled
        handle { $0.submit(message, as: ticket, $1) }
    }

    func close(_ closed: @escaping () -> Void) {
        guard session.phase != .closed else { return closed() }
        closers.append(closed)
        handle { $0.close($1) }
    }

    // MARK: Session

    private func handle(_ event: (inout SMPPSession, Instant) -> Void) {
        event(&session, loop.time.instant())
        // The outer call carries out actions that arise during an action.
        guard !isActing else { return }
        isActing = true
        while true {
            // The fault is published before callers get their outcomes.
            self.shared.fault = session.fault
            let actions = session.takeActions()
            guard !actions.isEmpty else { break }
            for action in actions { act(action) }
        }
        isActing = false
        setTimer()
    }

    private func act(_ action: SMPPSession.Action) {
        switch action {
        case .connect: connect()
        case .write(let bytes): wire?.write(bytes)
        case .disconnect:
            connection += 1
            wire?.close()
            wire = nil
        case .settled(let ticket, let outcome): waiting.removeValue(forKey: ticket)?(outcome)
        case .receipt(let receipt): self.shared.receipts(receipt)
        case .closed:
            let closers = closers
            self.closers = []
            for closer in closers { closer() }
        }
    }

    private func setTimer() {
        let next = session.nextDeadline
        guard next != timer?.at else { return }
        if let timer { loop.cancel(timer.id) }
        timer = next.map { next in
            let id = loop.schedule(at: next) { [weak self] in
                self?.timer = nil
                self?.handle { $0.tick($1) }
            }
            return (id, next)
        }
    }

    // MARK: Connection

    private func connect() {
        connection += 1
        let (number, dialling, shared) = (
            connection, Connector(loop: loop, options: options), LoopBound(self, on: loop)
        )
        // TLS is part of connecting and shares its time limit.
        let overdue = loop.schedule(after: options.connectTimeout + .seconds(1)) { [weak self] in
            self?.lost(number, "cannot connect: timed out")
        }
        loop.spawn {
            let result = await dialling.wire()
            shared.value.dialled(number, result, overdue)
        }
    }

    private func dialled(_ number: Int, _ result: Result<Transport, Connector.Failure>, _ overdue: TimerID) {
        let wire: Transport
        switch result {
        case .failure(let failure):
            loop.cancel(overdue)
            return lost(number, failure.reason)
        case .success(let made): wire = made
        }
        guard number == connection else {
            loop.cancel(overdue)
            return wire.close()
        }
        self.wire = wire
        wire.isUp = { [weak self] in
            guard let self, number == connection else { return }
            loop.cancel(overdue)
            handle { $0.connected($1) }
        }
        wire.received = { [weak self] bytes in
            guard let self, number == connection else { return }
            handle { $0.received(bytes, $1) }
        }
        wire.ended = { [weak self] reason in
            self?.loop.cancel(overdue)
            self?.lost(number, reason)
        }
        wire.start()
    }

    private func lost(_ number: Int, _ reason: String) {
        guard number == connection else { return }
        connection += 1
        wire?.close()
        wire = nil
        handle { $0.disconnected(reason, $1) }
    }
}
