/// A message of the key service on its socket: its length in four bytes, the most significant
/// first, then its bytes.
///
/// A length above the limit is refused before anything is stored, so a peer cannot make this
/// process allocate more. Tested in `FrameTests.swift`.
enum KeyFrame {
    /// The length of the longest message: a revocation list with `RevocationList.mostEntries`, or
    /// the request for it.
    static let limit = 4 << 20
    static let headerBytes = 4

    static func encode(_ message: [UInt8]) -> [UInt8] {
        precondition(message.count <= limit, "the outgoing message is too long")
        var frame: [UInt8] = []
        frame.reserveCapacity(headerBytes + message.count)
        appendHeader(message.count, to: &frame)
        frame.append(contentsOf: message)
        return frame
    }

    static func appendHeader(_ count: Int, to frame: inout [UInt8]) {
        withUnsafeBytes(of: UInt32(count).bigEndian) { frame.append(contentsOf: $0) }
    }

    /// Reads the length at the beginning of a frame.
    static func length(_ header: some Collection<UInt8>) throws(KeyServiceFailure) -> Int {
        let length = Int(header.reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
        guard length <= limit else { throw .malformed("a message has \(length) bytes; the limit is \(limit)") }
        return length
    }
}

/// Collects the bytes of one frame, which may arrive in any number of pieces.
struct KeyFrameBuffer {
    private var bytes: [UInt8] = []

    var isEmpty: Bool { bytes.isEmpty }

    mutating func append(_ more: some Collection<UInt8>) { bytes.append(contentsOf: more) }

    /// Returns the message when it is complete, and nil before. Bytes after it are refused, because
    /// a connection has one request.
    func message() throws(KeyServiceFailure) -> [UInt8]? {
        guard bytes.count >= KeyFrame.headerBytes else { return nil }
        let end = KeyFrame.headerBytes + (try KeyFrame.length(bytes.prefix(KeyFrame.headerBytes)))
        guard bytes.count <= end else { throw .malformed("more than one message") }
        return bytes.count == end ? Array(bytes[KeyFrame.headerBytes...]) : nil
    }
}

/// The reason why a request to the key service failed.
public enum KeyServiceFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// The service does not listen, or does not answer in time.
    case unavailable(String)
    /// The other end sent something that is not a message of the protocol.
    case malformed(String)
    /// The service refused the request.
    case refused(String)
    /// The authority outside of the installation wants to be asked again after this time.
    case later(String, Duration)

    public var description: String {
        switch self {
        case .unavailable(let reason), .malformed(let reason), .refused(let reason), .later(let reason, _): reason
        }
    }
}
