import EventLoop
import Glibc

/// The listening sockets that systemd has opened for this process (socket activation, `sd_listen_fds`).
///
/// systemd keeps the sockets while the relay restarts, so clients that connect meanwhile wait in the
/// kernel's queue and are not refused. The variables name the process, so that a child of the relay
/// or of a shell does not take them for its own.
///
/// A socket with the name `metrics` (`FileDescriptorName=`) is for the metrics page, one with the
/// name `phone` for browsers, any other for the relay. Tests: `SocketActivationTests`.
public struct InheritedSockets: Sendable {
    static let variables = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"]
    /// The first descriptor, by the protocol.
    private static let first: Int32 = 3

    /// The socket of the relay; nil if it opens its own.
    let relay: ListeningSocket?
    /// The socket of the metrics page; nil if it opens its own.
    let metrics: ListeningSocket?

    /// The socket for browsers; nil if the relay opens its own.
    let browsers: ListeningSocket?

    public static let none = InheritedSockets()

    private init(
        relay: ListeningSocket? = nil, metrics: ListeningSocket? = nil, browsers: ListeningSocket? = nil
    ) {
        self.relay = relay
        self.metrics = metrics
        self.browsers = browsers
    }

    /// Takes the sockets over, and removes the variables. It must run before other threads read
    /// the environment.
    public static func take() throws(Failure) -> InheritedSockets {
        let values = variables.map { name in getenv(name).map { String(cString: $0) } }
        for name in variables { unsetenv(name) }
        guard let count = try count(values[0], values[1]) else { return .none }
        let names = (values[2] ?? "").split(separator: ":", omittingEmptySubsequences: false)
        var sockets: [String: ListeningSocket] = [:]
        for index in 0..<count {
            let socket = try adopt(first + Int32(index))
            let name = index < names.count ? String(names[index]) : ""
            let use = ["metrics", "phone"].contains(name) ? name : "relay"
            guard sockets.updateValue(socket, forKey: use) == nil else {
                let fault = use == "relay" ? "for the relay" : "with the name \(use)"
                throw failure("systemd passes two sockets \(fault)")
            }
        }
        return InheritedSockets(relay: sockets["relay"], metrics: sockets["metrics"], browsers: sockets["phone"])
    }

    /// Returns the number of sockets; nil if they are not for this process.
    private static func count(_ process: String?, _ number: String?) throws(Failure) -> Int? {
        guard let process, pid_t(process) == getpid(), let number else { return nil }
        guard let count = Int(number), (1...16).contains(count) else {
            throw failure("LISTEN_FDS is \(number), which is no number of sockets")
        }
        return count
    }

    private static func adopt(_ fd: Int32) throws(Failure) -> ListeningSocket {
        do throws(SystemFailure) {
            return try ListeningSocket(adopting: fd)
        } catch {
            throw failure("descriptor \(fd) from systemd cannot be used: \(error)")
        }
    }

    private static func failure(_ reason: String) -> Failure {
        Failure(
            .failed, reason,
            next: "Give one ListenStream= with an IP address and port in twoefayd.socket, and at most one more "
                + "each with FileDescriptorName=metrics and phone, in units of their own.")
    }
}
