import CLinux
import EventLoop
import Glibc
import JSON
import Log
import World

/// The Unix socket at which the running relay performs commands of `twoefay` for other accounts of
/// the machine (the settings `control`). It is used only on its loop.
///
/// Purpose: the help desk needs no key and no right to write to the store. The relay performs the
/// command, signs the rows and writes the audit, with the account that the kernel names as the actor.
///
/// Invariants: the kernel names the account and its groups (`SO_PEERCRED`, `SO_PEERGROUPS`); one
/// without a role is told so and disconnected before it is read. A connection has one request of at
/// most `longestRequest` bytes, a deadline for it, and one answer. The loop that accepts serves no
/// logins, and a command runs on a thread of its own with its own connections to the store.
///
/// Failure modes: a peer may be slow, send something else or leave. Its connection ends, and nothing
/// else. An account has few connections at once, so it cannot keep others out.
///
/// Tests: `ControlSocketTests`, `ControlRoleTests`.
final class ControlSocket {
    static let patience = Duration.seconds(5)
    static let longestRequest = 16 << 10
    private static let threads = 4
    /// The connections of all accounts, and of one.
    private static let (most, mostOfOne) = (64, 4)
    /// The connections that are accepted before the loop does something else, such as its signs of
    /// life: accounts that connect without end must not keep it busy.
    private static let mostAccepted = 16

    private struct Peer {
        let caller: ControlCaller
        var watch: DescriptorWatcher?
        var deadline: TimerID?
        var request: [UInt8] = []
        /// Whether its command changes something.
        var isChange = false
    }

    private let loop: EventLoop
    private let listener: ControlListener
    private let runner: ControlRunner
    private let log: Log
    private let time: any TimeSource
    private let workers: [WorkerThread]
    private var queue: ControlQueue<ControlRunner.Job, WorkerThread>
    private var limits = ControlLimits()
    private var watch: DescriptorWatcher?
    private var peers: [Int32: Peer] = [:]
    private var afterStop: CheckedContinuation<Void, Never>?

    init(_ listener: ControlListener, _ runner: ControlRunner, on loop: EventLoop, log: Log) throws(SystemFailure) {
        self.loop = loop
        self.listener = listener
        self.runner = runner
        self.log = log
        time = SystemTime()
        var workers: [WorkerThread] = []
        for _ in 0..<Self.threads { workers.append(try WorkerThread(name: "control")) }
        self.workers = workers
        queue = ControlQueue(threads: workers)
    }

    func start() throws(SystemFailure) {
        watch = try loop.watch(fd: listener.fd, .read) { [weak self] _ in self?.accept() }
        log.notice("control.listening", [.path: listener.path])
    }

    /// Ends all connections, removes the socket, and waits until no command runs. A change that has begun
    /// ends, and its caller gets the answer.
    func stop() async {
        runner.stop.begin()
        watch?.cancel()
        watch = nil
        listener.close()
        for (fd, peer) in peers {
            let isRunning = peer.watch == nil && !queue.jobs.contains { $0.fd == fd }
            guard isRunning else {
                end(fd)
                continue
            }
            // A thread that waits for the peer continues, and the command ends.
            if !peer.isChange { shutdown(fd, Int32(SHUT_RDWR)) }
        }
        queue.clear()
        if !peers.isEmpty { await withCheckedContinuation { afterStop = $0 } }
        for worker in workers { worker.stop() }
    }

    private func accept() {
        for _ in 0..<Self.mostAccepted {
            let fd = clinux_accept(listener.fd, nil, nil)
            guard fd >= 0 else { return }
            guard let caller = ControlCaller(fd, runner.groups) else {
                close(fd)
                continue
            }
            let own = peers.values.count { $0.caller.user == caller.user }
            if caller.roles.isEmpty {
                refuse(
                    fd, caller, .failed, "your account has no role at this relay",
                    "Ask an operator: the settings control.auditors, control.helpdesk and control.operators name the groups "
                        + "that have one.")
            } else if peers.count >= Self.most || own >= Self.mostOfOne {
                refuse(
                    fd, caller, .unavailable, "too many commands run at once",
                    "At most \(Self.most) run at once, and \(Self.mostOfOne) of one account: wait until one has ended, and run "
                        + "it again.")
            } else {
                admit(fd, caller)
            }
        }
    }

    private func admit(_ fd: Int32, _ caller: ControlCaller) {
        do throws(SystemFailure) {
            let watch = try loop.watch(fd: fd, .read) { [weak self] _ in self?.read(fd) }
            let deadline = loop.schedule(after: Self.patience) { [weak self] in
                self?.peers[fd]?.deadline = nil
                self?.end(fd)
            }
            peers[fd] = Peer(caller: caller, watch: watch, deadline: deadline)
        } catch {
            close(fd)
        }
    }

    private func read(_ fd: Int32) {
        var chunk = [UInt8](repeating: 0, count: Self.longestRequest)
        let count = recv(fd, &chunk, chunk.count, 0)
        if count < 0, [EAGAIN, EINTR].contains(errno) { return }
        guard count > 0, peers[fd] != nil else { return end(fd) }
        peers[fd]?.request += chunk[..<count]
        guard let peer = peers[fd] else { return }
        guard let line = peer.request.firstIndex(of: UInt8(ascii: "\n")) else {
            if peer.request.count > Self.longestRequest { end(fd) }
            return
        }
        // The answer takes as long as the command. Whatever else the peer sends is not read.
        peer.watch?.cancel()
        if let deadline = peer.deadline { loop.cancel(deadline) }
        peers[fd] = Peer(caller: peer.caller)
        let now = time.instant()
        do throws(Failure) {
            let text = Array(peer.request[..<line])
            let read = Result { () throws(Failure) in try runner.read(text, of: peer.caller, fd) }
            // A request that cannot be read counts, too.
            try pass(fd, isChange: (try? read.get())?.command.isChange == true, at: now)
            let job = try read.get()
            peers[fd]?.isChange = job.command.isChange
            if let started = queue.add(job, of: job.caller.user, isChange: job.command.isChange) { run(started) }
        } catch {
            ControlReply(fd).end(error)
            end(fd)
        }
    }

    private func pass(_ fd: Int32, isChange: Bool, at now: Instant) throws(Failure) {
        guard let caller = peers[fd]?.caller else { return }
        guard let wait = limits.admit(caller.user, isChange: isChange, at: now, by: runner.limits) else { return }
        if limits.mustReport(caller.user, at: now) {
            log.warning("control.limited", [.subject: "\(caller.user)", .name: isChange ? "changes" : "requests"])
        }
        throw Failure(
            .unavailable, "too many requests of your account in this minute",
            next: "Try again in \(wait.components.seconds + 1) seconds. The settings control.requests and "
                + "control.changes are the limits.")
    }

    // MARK: Threads

    private func run(_ started: ControlQueue<ControlRunner.Job, WorkerThread>.Started) {
        let (job, worker) = started
        let bound = LoopBound(self, on: loop)
        worker.post { [runner, loop] in
            runner.perform(job)
            loop.post { bound.value.finished(job, worker) }
        }
    }

    private func finished(_ job: ControlRunner.Job, _ worker: WorkerThread) {
        end(job.fd)
        if let next = queue.end(of: job.caller.user, isChange: job.command.isChange, on: worker) { run(next) }
        if peers.isEmpty, let afterStop {
            self.afterStop = nil
            afterStop.resume()
        }
    }

    // MARK: Ends

    private func refuse(_ fd: Int32, _ caller: ControlCaller, _ code: ExitCode, _ message: String, _ next: String) {
        if limits.mustReport(caller.user, at: time.instant()) {
            log.warning("control.refused", [.subject: "\(caller.user)", .reason: message])
        }
        ControlReply(fd).end(Failure(code, message, next: next))
        close(fd)
    }

    private func end(_ fd: Int32) {
        guard let peer = peers.removeValue(forKey: fd) else { return }
        peer.watch?.cancel()
        if let deadline = peer.deadline { loop.cancel(deadline) }
        close(fd)
    }
}
