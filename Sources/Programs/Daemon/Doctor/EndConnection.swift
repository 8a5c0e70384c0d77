import Bytes
import CLinux
import Crypto
import EventLoop
import Glibc
import TLS
import World

/// A connection of `twoefay doctor` to another program: TCP, TLS if it is wanted, and lines of text.
/// All of it blocks the calling thread, up to one moment.
final class EndConnection {
    /// The reason why an end cannot be used.
    struct Fault: Error, Sendable, Equatable, CustomStringConvertible {
        let description: String
        init(_ description: String) { self.description = description }
    }

    private let fd: Int32
    private let end: Instant
    private let time: any TimeSource
    private var session: TLSSession?
    private var rest: [UInt8] = []

    private init(_ fd: Int32, until end: Instant, _ time: any TimeSource) {
        self.fd = fd
        self.end = end
        self.time = time
    }

    deinit {
        session?.shutdown()
        session = nil
        close(fd)
    }

    /// Connects to the first address of a host that accepts.
    static func open(
        _ host: String, _ port: UInt16, until end: Instant, _ time: any TimeSource
    ) -> Result<EndConnection, Fault> {
        var last = Fault("no address")
        let addresses: [SocketAddress]
        switch lookUp(host, port) {
        case .failure(let fault): return .failure(fault)
        case .success(let found): addresses = found
        }
        for address in addresses {
            do throws(SystemFailure) {
                let connection = EndConnection(try Socket.connect(address), until: end, time)
                guard connection.wait(for: .write) else { return .failure(Fault("no answer from \(address) in time")) }
                let code = Socket.connectionError(connection.fd)
                if code == 0 { return .success(connection) }
                last = Fault("\(address): \(String(cString: strerror(code)))")
            } catch {
                last = Fault("\(address): \(error)")
            }
        }
        return .failure(last)
    }

    private static func lookUp(_ host: String, _ port: UInt16) -> Result<[SocketAddress], Fault> {
        if let address = SocketAddress(host: host, port: port) { return .success([address]) }
        return Resolver.lookUp(host, port).mapError { Fault("the name is not known: \($0.reason)") }
    }

    /// Waits until the socket is ready, or the time is over.
    private func wait(for interest: Interest) -> Bool {
        let left = (end - time.instant()).wholeMilliseconds
        guard left > 0 else { return false }
        let events = (interest.contains(.write) ? POLLOUT : 0) | (interest.contains(.read) ? POLLIN : 0)
        var watched = pollfd(fd: fd, events: Int16(events), revents: 0)
        return poll(&watched, 1, Int32(clamping: left)) > 0
    }

    // MARK: TLS

    /// Begins TLS.
    ///
    /// - Returns: the certificate of the other end.
    func secure(_ context: TLSClientContext, host: String) -> Result<Certificate, Fault> {
        do throws(TLSFailure) {
            let session = try TLSSession(client: context, fd: fd, host: host)
            while true {
                switch session.handshake() {
                case .complete:
                    self.session = session
                    guard let certificate = session.serverCertificate else {
                        return .failure(Fault("its certificate cannot be read"))
                    }
                    return .success(certificate)
                case .incomplete(let interest):
                    guard wait(for: interest) else { return .failure(Fault("no answer to the TLS handshake in time")) }
                case .failed(let failure): return .failure(Fault(failure.reasons.last ?? failure.what))
                }
            }
        } catch {
            return .failure(Fault(error.description))
        }
    }

    // MARK: Lines

    func send(_ text: String) -> Bool {
        var bytes = Array(text.utf8)
        while !bytes.isEmpty {
            let (count, interest) = write(bytes)
            if count > 0 {
                bytes.removeFirst(count)
            } else if let interest {
                guard wait(for: interest) else { return false }
            } else {
                return false
            }
        }
        return true
    }

    /// Returns the number of bytes that were written, or what to wait for.
    private func write(_ bytes: [UInt8]) -> (count: Int, Interest?) {
        guard let session else {
            let count = Glibc.send(fd, bytes, bytes.count, Int32(MSG_NOSIGNAL))
            return (max(count, 0), count < 0 && errno == EAGAIN ? .write : nil)
        }
        switch bytes.withUnsafeBytes({ session.write($0) }) {
        case .bytes(let count): return (count, nil)
        case .incomplete(let interest): return (0, interest)
        case .failed: return (0, nil)
        }
    }

    /// The longest line that is read. A program that sends no end of a line is not ours.
    private static let longest = 64 << 10

    /// Reads up to the end of a line; nil if the other end closes, or the time is over.
    func line() -> String? {
        while true {
            if let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                let line = rest[..<end]
                rest.removeFirst(end + 1)
                return String(decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line, as: UTF8.self)
            }
            guard rest.count < Self.longest, let more = read() else { return nil }
            rest += more
        }
    }

    /// Reads bytes; nil if the other end closes, or the time is over.
    private func read() -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            guard let session else {
                guard wait(for: .read) else { return nil }
                let count = recv(fd, &buffer, buffer.count, 0)
                if count < 0, errno == EAGAIN || errno == EINTR { continue }
                return count > 0 ? Array(buffer[..<count]) : nil
            }
            switch buffer.withUnsafeMutableBytes({ session.read(into: $0) }) {
            case .bytes(let count): return Array(buffer[..<count])
            case .incomplete(let interest): guard wait(for: interest) else { return nil }
            case .closed, .failed: return nil
            }
        }
    }
}
