import CLinux
import Crypto
import EventLoop
import Glibc
import Log
import Relay

/// A listening socket, created before the process is restricted.
public struct KeyListener: Sendable {
    public let path: String
    let fd: Int32

    /// Creates the socket.
    ///
    /// - Parameter isShared: whether the group of this process may connect, too. The server then
    ///   still checks the peer's user.
    public init(path: String, isShared: Bool) throws(SystemFailure) {
        self.path = path
        fd = try UnixSocket.listen(path, mode: isShared ? 0o660 : 0o600)
    }

    /// Closes the socket and removes its path.
    public func close() {
        Glibc.close(fd)
        unlink(path)
    }
}

/// The server of the key service, which runs in `twoefay-keys`. It is used only on its loop.
///
/// Purpose: the master key and the key of the phones' authority stay in a process that is not
/// reachable from the network. The relay gets derived keys, and certificates for phones.
///
/// Invariant: a connection has one request, one answer and one deadline. The kernel reports the
/// user of the peer (`SO_PEERCRED`); other users than the allowed ones are disconnected before they
/// are read, and logged. No request returns the master key or signs bytes that a caller chooses.
///
/// Failure modes: a peer may be slow, send too much, or send something that is not a request. Its
/// connection ends, and nothing else. If too many peers connect, further ones wait in the kernel's
/// queue.
///
/// `KeyServerTests.swift` tests both ends over a real socket, `KeyProcessTests.swift` the two
/// programs.
public final class KeyServer {
    public struct Limits: Sendable {
        public var request = Duration.seconds(5)
        public var connections = 32

        public init() {}
    }

    let loop: EventLoop
    let limits: Limits
    let log: Log
    private let listener: KeyListener
    private let users: Set<uid_t>
    /// The command that issues certificates; nil without one.
    private let commands: CommandService?
    private let answer: (KeyRequest, pid_t) -> KeyReply
    private var watch: DescriptorWatcher?
    private var connections: [ObjectIdentifier: KeyConnection] = [:]

    public init(
        loop: EventLoop, listener: KeyListener, users: Set<UInt32>, limits: Limits = Limits(), log: Log,
        commands: CommandService? = nil, answer: @escaping (KeyRequest, pid_t) -> KeyReply
    ) {
        self.loop = loop
        self.listener = listener
        self.users = users
        self.limits = limits
        self.log = log
        self.commands = commands
        self.answer = answer
    }

    public func start() throws(SystemFailure) {
        try commands?.start()
        watch = try loop.watch(fd: listener.fd, .read) { [weak self] _ in self?.accept() }
    }

    /// Ends all connections and removes the socket.
    public func stop() {
        watch?.cancel()
        watch = nil
        for connection in connections.values { connection.close() }
        connections = [:]
        commands?.stop()
        listener.close()
    }

    private func accept() {
        while watch != nil, connections.count < limits.connections {
            let fd = clinux_accept(listener.fd, nil, nil)
            guard fd >= 0 else {
                if errno == EAGAIN { return }
                log.error("keys.accept", [.error: SystemFailure("accept4").description])
                return pause()
            }
            admit(fd)
        }
        // At the limit, the next peer waits in the kernel until a connection ends.
        watch?.change([])
    }

    /// Stops accepting for 100 ms. Otherwise the loop would report the same waiting peer in every
    /// turn.
    private func pause() {
        watch?.change([])
        loop.schedule(after: .milliseconds(100)) { [weak self] in self?.watch?.change(.read) }
    }

    private func admit(_ fd: Int32) {
        let found = UnixSocket.peer(of: fd)
        guard let peer = found, users.contains(peer.user) else {
            let user = found.map { "user \($0.user)" } ?? "an unknown user"
            log.warning("keys.stranger", [.reason: "\(user) may not use this service"])
            Glibc.close(fd)
            return
        }
        let connection = KeyConnection(fd: fd, process: peer.process, server: self)
        do throws(SystemFailure) {
            try connection.start()
            connections[ObjectIdentifier(connection)] = connection
        } catch {
            log.error("keys.accept", [.error: error.description])
            connection.close()
        }
    }

    /// Answers a request: at once, or when the command has ended. A malformed request is logged and
    /// refused.
    func reply(to message: [UInt8], from connection: KeyConnection, then: @escaping (KeyReply) -> Void) {
        let request: KeyRequest
        do throws(KeyServiceFailure) {
            request = try KeyRequest(message: message)
        } catch {
            log.warning("keys.malformed", [.process: Int(connection.process), .reason: error.description])
            return then(.refused(error.description))
        }
        guard case .request(let device, let tag, let signed, let isRenewal) = request, let commands else {
            return then(answer(request, connection.process))
        }
        let patience = limits.request + commands.timeout
        connection.wait(for: patience)
        let order = CertificateOrder(
            of: device, tag: tag, key: signed.key, request: signed, isRenewal: isRenewal)
        commands.run(order, signed, of: connection.process, within: patience, then: then)
    }

    func ended(_ connection: KeyConnection) {
        connection.close()
        connections[ObjectIdentifier(connection)] = nil
        watch?.change(.read)
    }
}
