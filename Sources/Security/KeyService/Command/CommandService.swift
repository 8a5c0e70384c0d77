import CLinux
import Crypto
import Domain
import EventLoop
import Glibc
import Log
import Relay
import World

/// The command's side in `twoefay-keys`: it passes requests on to the launcher, and turns the end of
/// a run into an answer. It is used only on its loop.
///
/// Invariant: at most `CommandLauncher.mostAtOnce` runs are under way; further requests are refused
/// at once. What the command has written is passed on as it is: only the relay reads it, because
/// this process has the keys.
///
/// Failure modes: a run whose end nobody reports is given up with the request of its peer, so it
/// keeps its place no longer. The launcher may still be busy with it; then a later run waits in the
/// socket, and is given up the same way. A message that is no end of a run ends the launcher.
///
/// Tests: `CommandServiceTests.swift`, `LauncherFaultTests.swift`.
public final class CommandService {
    /// The exit status of a command that has passed the request on, and whose authority has not
    /// decided yet (EX_TEMPFAIL of sysexits.h).
    static let pending: Int32 = 75
    /// The exit status of a command that could not reach its authority (EX_UNAVAILABLE).
    static let unavailable: Int32 = 69
    /// The pause after `pending`, unless the command wrote another one.
    static let pause = Duration.seconds(3600)
    static let longestPause = Duration.seconds(86_400)
    /// The pause of a phone that came while all places were taken.
    static let busy = Duration.seconds(10)

    private struct Pending {
        let order: CertificateOrder
        let process: pid_t
        let begin: Instant
        let timer: TimerID
        let then: (KeyReply) -> Void
    }

    /// The longest time of a run.
    let timeout: Duration
    private let loop: EventLoop
    private let launcher: Int32
    private let log: Log
    private var watch: DescriptorWatcher?
    private var runs: [Int64: Pending] = [:]
    private var last: Int64 = 0
    private var isGone = false

    /// Takes over the socket to the launcher.
    public init(loop: EventLoop, launcher: Int32, timeout: Duration, log: Log) {
        self.loop = loop
        self.launcher = launcher
        self.timeout = timeout
        self.log = log
    }

    public func start() throws(SystemFailure) {
        watch = try loop.watch(fd: launcher, .read) { [weak self] _ in self?.receive() }
    }

    /// Closes the socket, which ends the launcher and its commands.
    public func stop() {
        watch?.cancel()
        watch = nil
        close(launcher)
        isGone = true
        drop("twoefay-keys stops")
    }

    /// Has the command run for an order, whose request asks for its name.
    ///
    /// - Parameter patience: the time after which the run is given up. It is longer than that of the
    ///   command, which the launcher ends.
    func run(
        _ order: CertificateOrder, _ request: SigningRequest, of process: pid_t, within patience: Duration,
        then: @escaping (KeyReply) -> Void
    ) {
        guard !isGone else { return then(.away("the launcher of the command has ended: restart twoefay-keys")) }
        guard runs.count < CommandLauncher.mostAtOnce else {
            report(order, process, "\(runs.count) commands run already", nil)
            return then(.later("\(runs.count) commands run already", Self.busy))
        }
        guard let pem = try? request.pem() else { return then(.refused("the request cannot be written")) }
        last += 1
        let run = CommandRun(
            id: last, name: order.name.uri, usage: order.tag == nil ? "clientAuth" : "documentSigning",
            isRenewal: order.isRenewal, request: pem)
        let message = run.message
        guard send(launcher, message, message.count, Int32(MSG_NOSIGNAL)) == message.count else {
            let reason = "the launcher of the command: \(SystemFailure("send"))"
            report(order, process, reason, nil)
            return then(.away(reason))
        }
        let timer = loop.schedule(after: patience) { [weak self, id = last] in self?.giveUp(id) }
        runs[last] = Pending(
            order: order, process: process, begin: loop.time.instant(), timer: timer, then: then)
    }

    private func giveUp(_ id: Int64) {
        guard let run = runs.removeValue(forKey: id) else { return }
        let reason = "the launcher of the command did not report the end of the run"
        report(run.order, run.process, reason, loop.time.instant() - run.begin)
        run.then(.away(reason))
    }

    private func receive() {
        var packet = [UInt8](repeating: 0, count: CommandLauncher.mostBytes)
        let count = recv(launcher, &packet, packet.count, 0)
        guard count > 0 else {
            if count < 0, [EAGAIN, EINTR].contains(errno) { return }
            return lose("the launcher of the command has ended")
        }
        let message = Array(packet[..<count])
        guard let id = CommandEnd.id(of: message), let end = CommandEnd(message: message) else {
            return lose("the launcher of the command sent a message that is no end of a run")
        }
        guard let run = runs.removeValue(forKey: id) else { return }
        loop.cancel(run.timer)
        let reply = Self.reply(to: end, timeout: timeout)
        report(run.order, run.process, end.fault(timeout: timeout), loop.time.instant() - run.begin)
        run.then(reply)
    }

    /// Does without the launcher from now on.
    private func lose(_ reason: String) {
        watch?.cancel()
        watch = nil
        shutdown(launcher, Int32(SHUT_RDWR))
        isGone = true
        log.error("keys.launcher", [.error: "\(reason): restart twoefay-keys"])
        drop(reason)
    }

    /// Ends all runs whose end nobody will report.
    private func drop(_ reason: String) {
        let dropped = runs.values
        runs = [:]
        for run in dropped {
            loop.cancel(run.timer)
            run.then(.away(reason))
        }
    }

    static func reply(to end: CommandEnd, timeout: Duration) -> KeyReply {
        guard let fault = end.fault(timeout: timeout) else { return .output(end.output) }
        switch end.cause {
        case .exited(pending): return .later(fault, pause(in: end.output))
        case .exited(unavailable), .signalled, .timeout: return .away(fault)
        case .exited, .tooLong, .unstarted: return .refused(fault)
        }
    }

    /// Returns the pause in seconds that a command with the status `pending` has written.
    private static func pause(in output: [UInt8]) -> Duration {
        let text = String(decoding: output.filter { $0 > 0x20 }, as: UTF8.self)
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let seconds = Int64(text) else { return pause }
        return min(max(.seconds(seconds), .seconds(1)), longestPause)
    }

    private func report(_ order: CertificateOrder, _ process: pid_t, _ fault: String?, _ time: Duration?) {
        let milliseconds = time.map { Int($0.wholeMilliseconds) }
        guard let fault else {
            return log.info(
                "keys.command",
                [.device: order.device.text, .process: Int(process), .milliseconds: milliseconds])
        }
        log.warning(
            "keys.command",
            [.device: order.device.text, .process: Int(process), .milliseconds: milliseconds, .reason: fault])
    }
}

extension CommandEnd {
    /// The reason why there is no certificate; nil if the command has ended with 0.
    func fault(timeout: Duration) -> String? {
        let said = lastError.isEmpty ? "" : ": \(lastError)"
        switch cause {
        case .exited(0): return nil
        case .exited(let status): return "the command ended with status \(status)\(said)"
        case .signalled(let number): return "the command was ended by signal \(number)\(said)"
        case .timeout: return "the command did not end within \(timeout.wholeMilliseconds) ms\(said)"
        case .tooLong: return "the command wrote more than \(Self.mostOutput) bytes\(said)"
        case .unstarted(let reason): return reason
        }
    }
}
