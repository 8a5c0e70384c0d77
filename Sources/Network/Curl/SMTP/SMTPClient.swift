import EventLoop
import Synchronization
import World

/// A client for one mail server. Connections are reused. A server that hangs delays only its own
/// mails. Mails that wait for a connection are taken from each owner in turn, and one owner alone
/// cannot fill the queue.
///
/// libcurl blocks during SMTP, even with its multi interface: it waits for the reply to the final
/// dot, and to QUIT, on the calling thread. So each connection has its own thread, and no loop is
/// blocked. Tests: `SMTPClientTests`, `SMTPSecurityTests`.
public final class SMTPClient: Sendable {
    typealias Outcome = Result<SMTPReply, SMTPFailure>

    private struct Job: Sendable {
        let number: UInt64
        let transfer: SMTPTransfer
        let end: Instant
        let tell: @Sendable (Outcome) -> Void
    }

    private struct State {
        /// The numbers of the mails that wait. One that was given up stays, and is skipped.
        var queue = FairQueue<String, UInt64>()
        var waiting: [UInt64: Job] = [:]
        var counts = OwnerCounts<String>()
        var lines: [SMTPConnection] = []
        var idle: [SMTPConnection] = []
        var last: UInt64 = 0
        var isClosed = false

        /// Removes a mail that waits; nil if it does not wait any more.
        mutating func take(_ number: UInt64) -> Job? {
            guard let job = waiting.removeValue(forKey: number) else { return nil }
            counts.remove(job.transfer.owner)
            return job
        }
    }

    public let server: SMTPServer
    private let time: any TimeSource
    private let state = Mutex(State())

    public init(_ server: SMTPServer, time: any TimeSource) {
        self.server = server
        self.time = time
    }

    /// No mail is under way: a caller that waits keeps this object alive.
    deinit { for line in state.withLock({ $0.lines }) { line.close() } }

    /// Sends a mail; call it on a loop. Always returns, at the transfer's deadline or shortly
    /// after.
    public func send(_ transfer: SMTPTransfer) async -> Result<SMTPReply, SMTPFailure> {
        guard let loop = EventLoop.current else { preconditionFailure("SMTPClient: not on a loop") }
        return await withUnsafeContinuation { continuation in
            let answer = LoopBound(Answer { continuation.resume(returning: $0) }, on: loop)
            // While the mail waits for a connection, only this timer enforces the deadline.
            let number = start(transfer) { outcome in loop.post { answer.value.give(outcome) } }
            guard let number else { return }
            answer.value.timer = loop.schedule(after: transfer.deadline) { self.giveUp(number) }
        }
    }

    /// Resumes the caller, on the caller's loop.
    private final class Answer {
        var timer: TimerID?
        private let resume: (Outcome) -> Void

        init(_ resume: @escaping (Outcome) -> Void) { self.resume = resume }

        func give(_ outcome: Outcome) {
            if let timer { EventLoop.current?.cancel(timer) }
            resume(outcome)
        }
    }

    /// Queues a mail. Returns nil if it has failed already.
    private func start(_ transfer: SMTPTransfer, _ tell: @escaping @Sendable (Outcome) -> Void) -> UInt64? {
        guard transfer.isSayable else {
            tell(.failure(SMTPFailure(.malformed, "the address cannot be used in SMTP")))
            return nil
        }
        let end = time.instant() + transfer.deadline
        do throws(SMTPFailure) {
            let (number, line) = try state.withLock { (state) throws(SMTPFailure) in
                if state.isClosed { throw SMTPFailure(.cancelled, "closed") }
                guard state.counts.hasRoom(for: transfer.owner, capacity: server.waiting) else {
                    throw SMTPFailure(.busy, "too many queued mails")
                }
                let line = try Self.line(&state, server)
                state.last += 1
                state.waiting[state.last] = Job(number: state.last, transfer: transfer, end: end, tell: tell)
                state.queue.append(state.last, of: transfer.owner)
                state.counts.add(transfer.owner)
                return (state.last, line)
            }
            if let line { work(on: line) }
            return number
        } catch {
            tell(.failure(error))
            return nil
        }
    }

    /// An idle connection, or a new one; nil if the limit of connections is reached.
    private static func line(_ state: inout State, _ server: SMTPServer) throws(SMTPFailure) -> SMTPConnection? {
        if let line = state.idle.popLast() { return line }
        guard state.lines.count < server.connections else { return nil }
        do {
            let line = try SMTPConnection(server)
            state.lines.append(line)
            return line
        } catch {
            // The existing connections will take the mail.
            if !state.lines.isEmpty { return nil }
            throw SMTPFailure(.busy, "cannot start a thread: \(error)")
        }
    }

    private func work(on line: SMTPConnection) {
        line.post { [self] in
            var job = next(line)
            while let current = job {
                let left = { @Sendable in current.end - self.time.instant() }
                let outcome = left() > .zero ? line.send(current.transfer, within: left) : .failure(Self.late)
                // The connection is marked idle before the caller gets the outcome, so that its
                // next mail can use this connection.
                job = next(line)
                current.tell(outcome)
            }
        }
    }

    private static let late = SMTPFailure(.deadline, "no connection was free in time")

    private func next(_ line: SMTPConnection) -> Job? {
        state.withLock { state in
            while let number = state.queue.popFirst() {
                if let job = state.take(number) { return job }
            }
            state.idle.append(line)
            return nil
        }
    }

    /// Fails a mail that still waits. A mail that is being sent ends by its own deadline.
    private func giveUp(_ number: UInt64) {
        let job = state.withLock { state in state.take(number) }
        job?.tell(.failure(Self.late))
    }

    /// The number of mails that are being sent or wait.
    public var count: Int { state.withLock { $0.waiting.count + $0.lines.count - $0.idle.count } }

    /// Ends all mails and connections. Waits for that, at most two seconds for each connection.
    public func close() {
        let (lines, jobs) = state.withLock { state in
            defer { (state.lines, state.waiting, state.isClosed) = ([], [:], true) }
            return (state.lines, state.waiting.values.sorted { $0.number < $1.number })
        }
        for job in jobs { job.tell(.failure(SMTPFailure(.cancelled, "closed"))) }
        for line in lines { line.close() }
        for line in lines { line.join(within: .seconds(2)) }
    }
}
