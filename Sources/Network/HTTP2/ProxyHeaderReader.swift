import EventLoop
import Glibc

/// Reads the PROXY header of a connection from its socket, in any number of pieces. It reads no
/// byte behind the header, because those belong to TLS, which reads the socket itself.
struct ProxyHeaderReader {
    enum Progress {
        case incomplete
        case whole(ProxyHeader)
        /// The peer closed the connection before it sent a byte.
        case closed
        case refused(ProxyHeader.Fault)
        case failed(SystemFailure)
    }

    private var bytes: [UInt8] = []

    mutating func read(from fd: Int32) -> Progress {
        while true {
            let missing: Int
            do throws(ProxyHeader.Fault) {
                switch try ProxyHeader.read(bytes) {
                case .whole(let header): return .whole(header)
                case .incomplete(let count): missing = count
                }
            } catch {
                return .refused(error)
            }
            let start = bytes.count
            bytes.append(contentsOf: repeatElement(0, count: missing))
            let count = bytes.withUnsafeMutableBytes { recv(fd, $0.baseAddress?.advanced(by: start), missing, 0) }
            let code = errno
            bytes.removeLast(missing - max(count, 0))
            if count > 0 { continue }
            if count == 0 { return start == 0 ? .closed : .refused(.cut) }
            if code == EAGAIN || code == EINTR { return .incomplete }
            return start == 0 ? .failed(SystemFailure("recv", code)) : .refused(.cut)
        }
    }
}
