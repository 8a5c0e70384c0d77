import Bytes
import CLinux
import Crypto
import Domain
import EventLoop
import Glibc
import JSON
import Relay
import World

/// The client of the key service, which runs in the relay.
///
/// Purpose: the relay has no key file. It gets its keys at the start and at a reload, and a
/// certificate whenever a phone is bound or renews its certificate.
///
/// Invariant: each request has its own connection and its own deadline, so no answer can be taken
/// for that of another request. The calls block their thread, so requests while the relay serves
/// run on the thread of `RemoteCertificates`.
///
/// Failure modes: the service may start later than the relay, so `unwrap` retries for a while. If
/// it is down, phones cannot be bound, but logins continue. An answer that does not fit the request
/// is refused; a certificate must contain the key that was sent.
///
/// `KeyServerTests.swift` tests both ends over a real socket, `KeyProcessTests.swift` the two
/// programs.
public struct KeyServiceClient: Sendable {
    public let path: String
    private let time: any TimeSource

    /// The longest time for one request.
    public static let timeout = Duration.seconds(5)

    public init(path: String, time: any TimeSource = SystemTime()) {
        self.path = path
        self.time = time
    }

    /// Gets the keys that are derived from the master key.
    ///
    /// - Parameter start: how long to wait for the service to start, if it starts together with the
    ///   relay.
    public func unwrap(waiting start: Duration) throws(KeyServiceFailure) -> DataKeys {
        let connection = try connect(until: time.instant() + start)
        defer { connection.close() }
        try connection.send(.unwrap)
        let list = try KeyReply.object(try connection.receive())
        return try DataKeys(list: list, bytes: Secret(try connection.receive()))
    }

    /// Gets a certificate for the key of a phone, in PEM.
    ///
    /// - Parameter tag: the tag of a further certificate; nil for the key that authenticates the
    ///   phone.
    public func issue(
        for key: P256PublicKey, tag: CertificateTag? = nil, of device: DeviceID, until deadline: Instant
    ) throws(KeyServiceFailure) -> String {
        let connection = try connect(until: time.instant(), deadline: deadline)
        defer { connection.close() }
        try connection.send(
            tag.map { .issueTagged(device: device, tag: $0, key: key) } ?? .issue(device: device, key: key))
        return try connection.certificate(for: key).pem
    }

    /// Gets a certificate for the key of a website.
    public func issue(
        for key: P256PublicKey, ofWebsite name: String, until deadline: Instant
    ) throws(KeyServiceFailure) -> Certificate {
        let connection = try connect(until: time.instant(), deadline: deadline)
        defer { connection.close() }
        try connection.send(.issueWebsite(name: name, key: key))
        return try connection.certificate(for: key).certificate
    }

    /// Has the command run for a certificate request. Returns what it has written.
    func request(
        _ order: CertificateOrder, _ request: SigningRequest, until deadline: Instant
    ) throws(KeyServiceFailure) -> [UInt8] {
        let connection = try connect(until: time.instant(), deadline: deadline)
        defer { connection.close() }
        try connection.send(
            .request(device: order.device, tag: order.tag, request: request, isRenewal: order.isRenewal))
        guard try KeyReply.object(try connection.receive())["output"] == true else {
            throw .malformed("the answer of the key service has no output of the command")
        }
        return try connection.receive()
    }

    /// Gets a revocation list with these certificates, in DER.
    public func revocationList(
        _ revoked: [RevokedCertificate], until deadline: Instant
    ) throws(KeyServiceFailure) -> [UInt8] {
        let connection = try connect(until: time.instant(), deadline: deadline)
        defer { connection.close() }
        try connection.send(.revocationList(revoked))
        guard try KeyReply.object(try connection.receive())["crl"] == true else {
            throw .malformed("the answer of the key service has no revocation list")
        }
        return try connection.receive()
    }

    /// The reason why the service cannot be reached; nil if it can. It only connects and sends no
    /// request.
    public var fault: String? { UnixSocket.failureToConnect(path).map { Self.unreachable(path, $0) } }

    /// Connects, and retries until `moment`, because a service that starts at the same time may not
    /// listen yet.
    private func connect(until moment: Instant, deadline: Instant? = nil) throws(KeyServiceFailure) -> Connection {
        while true {
            do throws(SystemFailure) {
                let fd = try UnixSocket.connect(path)
                return Connection(fd: fd, deadline: deadline ?? (time.instant() + Self.timeout), time: time)
            } catch {
                guard time.instant() < moment, [ENOENT, ECONNREFUSED, EAGAIN].contains(error.code) else {
                    throw .unavailable(Self.unreachable(path, error))
                }
                poll(nil, 0, 50)
            }
        }
    }

    private static func unreachable(_ path: String, _ failure: SystemFailure) -> String {
        "the key service cannot be reached at \(path): \(failure)"
    }
}

/// A connection to the key service, with its deadline.
private struct Connection {
    let fd: Int32
    let deadline: Instant
    let time: any TimeSource

    static let closed = KeyServiceFailure.unavailable(
        "the key service closed the connection; read its log, and check that --peer names the user of this process")

    func close() { Glibc.close(fd) }

    func send(_ request: KeyRequest) throws(KeyServiceFailure) {
        var rest = KeyFrame.encode(request.message)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(fd, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            if count > 0 { rest = rest.dropFirst(count) } else { try wait(POLLOUT, "send") }
        }
    }

    /// Receives a certificate, which must be for this key.
    func certificate(for key: P256PublicKey) throws(KeyServiceFailure) -> (pem: String, certificate: Certificate) {
        guard let pem = try KeyReply.object(try receive())["certificate"]?.string,
            let issued = try? Certificate(pem: Array(pem.utf8)), issued.spkiThumbprint == key.spkiThumbprint
        else { throw .malformed("the answer of the key service has no certificate for this key") }
        return (pem, issued)
    }

    /// Receives one message.
    func receive() throws(KeyServiceFailure) -> [UInt8] {
        try receive(exactly: try KeyFrame.length(try receive(exactly: KeyFrame.headerBytes)))
    }

    /// Receives into one array, so that no copy of a key stays in memory.
    private func receive(exactly count: Int) throws(KeyServiceFailure) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let received = bytes.withUnsafeMutableBytes {
                recv(fd, $0.baseAddress.map { $0 + filled }, count - filled, 0)
            }
            if received > 0 {
                filled += received
            } else if received == 0 {
                throw Self.closed
            } else {
                try wait(POLLIN, "recv")
            }
        }
        return bytes
    }

    /// Waits until the socket is ready, after a call that could not complete.
    private func wait(_ event: Int32, _ call: String) throws(KeyServiceFailure) {
        let failure = SystemFailure(call)
        guard ![EPIPE, ECONNRESET].contains(failure.code) else { throw Self.closed }
        guard [EAGAIN, EINTR].contains(failure.code) else { throw .unavailable("the key service: \(failure)") }
        let left = (deadline - time.instant()).wholeMilliseconds
        guard left > 0 else { throw .unavailable("the key service did not answer in time") }
        var socket = pollfd(fd: fd, events: Int16(event), revents: 0)
        poll(&socket, 1, Int32(clamping: left))
    }
}
