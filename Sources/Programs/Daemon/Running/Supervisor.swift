import CLinux
import EventLoop
import Glibc
import World

/// The connection to the service manager that started this process, such as systemd (`sd_notify`).
///
/// Purpose: the service manager learns when the process serves, reloads and stops, and replaces a
/// process with a loop that hangs (the watchdog). Each message is one datagram, so no library is
/// needed.
///
/// Invariants: `connect` runs before the process is restricted and before another thread reads the
/// environment. The socket stays open from then on, so the restrictions do not concern it. The
/// watchdog depends on the event loops only, never on the store or on another service: a new process
/// would not repair those.
///
/// Failure modes: if the service manager does not read, a message waits for at most `patience` and is
/// then lost; signs of life do not wait. Nothing else in the process depends on the messages.
///
/// Tests: `SupervisorTests`, `WatchdogTests`.
public final class Supervisor: Sendable {
    static let variables = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"]
    /// The longest wait for a service manager that does not read.
    private static let patience = timeval(tv_sec: 1, tv_usec: 0)

    /// A process that no service manager started.
    public static let none = Supervisor(fd: nil, watchdog: nil, fault: nil)

    private let fd: Int32?
    /// The time after which a process without a sign of life is ended; nil if nobody watches.
    let watchdog: Duration?
    /// The reason why the socket in the environment cannot be used; nil if it can, or if there is
    /// none.
    let fault: String?

    private init(fd: Int32?, watchdog: Duration?, fault: String?) {
        self.fd = fd
        self.watchdog = watchdog
        self.fault = fault
    }

    deinit { if let fd { close(fd) } }

    /// Connects to the service manager that the environment names, and removes the variables.
    public static func connect() -> Supervisor {
        let values = variables.map { name in getenv(name).map { String(cString: $0) } }
        for name in variables { unsetenv(name) }
        return connect(to: values[0], watchdog: watchdog(values[1], process: values[2]))
    }

    /// Connects to a socket; nil or an empty address means that there is no service manager.
    static func connect(to address: String?, watchdog: Duration? = nil) -> Supervisor {
        guard let address, !address.isEmpty else { return none }
        do throws(SystemFailure) {
            let fd = try DatagramSocket.connect(to: address, patience: patience)
            return Supervisor(fd: fd, watchdog: watchdog, fault: nil)
        } catch {
            return Supervisor(fd: nil, watchdog: nil, fault: "NOTIFY_SOCKET=\(address): \(error)")
        }
    }

    /// Returns the time of the watchdog; nil if it is off, or is for another process.
    static func watchdog(_ microseconds: String?, process: String?) -> Duration? {
        guard let microseconds, let time = Int64(microseconds), time > 0 else { return nil }
        if let process, pid_t(process) != getpid() { return nil }
        return .microseconds(time)
    }

    // MARK: Messages

    public func ready(_ status: String) { send("READY=1\n\(Self.line(status))") }

    /// Says that files and settings are read again. `ready` must follow.
    func reloading(at moment: Instant) {
        let microseconds = moment.nanoseconds / 1000
        send("RELOADING=1\nMONOTONIC_USEC=\(microseconds)\n\(Self.line("Reads files and settings again."))")
    }

    public func stopping() { send("STOPPING=1\n\(Self.line("Answers open requests, then stops."))") }

    /// Sends a sign of life at half of the watchdog's time, while each of these loops runs its work.
    /// Does nothing if nobody watches. Must be called on `main`.
    func watch(_ loops: [EventLoop], on main: EventLoop) {
        guard let watchdog else { return }
        main.spawn {
            await self.signOfLife(loops)
            main.schedule(after: watchdog / 2) { self.watch(loops, on: main) }
        }
    }

    /// Sends a sign of life as soon as each loop has run a piece of work.
    func signOfLife(_ loops: [EventLoop]) async {
        for loop in loops { await loop.perform {} }
        send("WATCHDOG=1", flags: Int32(MSG_DONTWAIT))
    }

    /// A status in one line, as the protocol needs it.
    private static func line(_ status: String) -> String {
        "STATUS=\(status.split(separator: "\n").joined(separator: " "))"
    }

    private func send(_ message: String, flags: Int32 = 0) {
        guard let fd else { return }
        var message = message
        message.withUTF8 { bytes in
            while Glibc.send(fd, bytes.baseAddress, bytes.count, flags | Int32(MSG_NOSIGNAL)) < 0 {
                guard errno == EINTR else { return }
            }
        }
    }
}

extension Failure {
    /// The status of a process whose last reload failed.
    var reloadStatus: String { "The last reload failed and changed nothing: \(message)" }
}
