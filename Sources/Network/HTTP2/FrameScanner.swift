/// Finds the heads of the frames in the bytes that a peer sends. It is needed because libnghttp2
/// does not report the frames that it ignores, and those cost as well.
struct FrameScanner {
    struct Head: Equatable {
        let type: UInt8
        let flags: UInt8
        let length: Int
        var stream: Int32 = 0
        /// The first bytes of the payload: 4 of a PRIORITY frame, 1 of a padded DATA frame,
        /// otherwise 0.
        var prefix: UInt32 = 0
    }

    /// Length in bytes of the client's connection preface, which is not a frame.
    static let preface = 24
    /// Bytes of a frame's head.
    private static let size = 9
    /// The longest head with its prefix.
    private static let room = 13

    private var skip: Int
    private var isInPreface: Bool
    private var held: (UInt64, UInt64) = (0, 0)
    private var heldCount = 0
    /// Number of frames begun so far. The latest one may be incomplete.
    private(set) var begun = 0

    init(skipping preface: Int) {
        skip = preface
        isInPreface = preface > 0
    }

    /// Whether the latest frame is incomplete.
    var isMidFrame: Bool { isMidHead || isMidPayload }
    /// Whether the head of the latest frame is incomplete.
    var isMidHead: Bool { heldCount > 0 }
    /// Whether the head of the latest frame is complete, but its payload is not.
    var isMidPayload: Bool { skip > 0 && !isInPreface }

    /// Returns the next complete head, and moves `at` behind it. Returns nil at the end of `bytes`.
    mutating func next(_ bytes: UnsafeRawBufferPointer, _ at: inout Int) -> Head? {
        while at < bytes.count {
            if skip > 0 {
                let step = min(skip, bytes.count - at)
                skip -= step
                at += step
                if skip == 0 { isInPreface = false }
                continue
            }
            if heldCount == 0 {
                begun += 1
                if bytes.count - at >= Self.room {
                    let head = Self.head(bytes, at)
                    at += Self.size
                    skip = head.length
                    return head
                }
            }
            // A head that the end of a read has cut in two.
            withUnsafeMutableBytes(of: &held) { $0[heldCount] = bytes[at] }
            heldCount += 1
            at += 1
            if let head = heldHead() { return head }
        }
        return nil
    }

    /// The collected head; nil until it and its prefix are complete.
    private mutating func heldHead() -> Head? {
        guard heldCount >= Self.size else { return nil }
        let (head, prefix) = withUnsafeBytes(of: &held) { (Self.head($0, 0), Self.prefixSize($0, 0)) }
        guard heldCount == Self.size + prefix else { return nil }
        heldCount = 0
        skip = head.length - prefix
        return head
    }

    private static func length(_ bytes: UnsafeRawBufferPointer, _ at: Int) -> Int {
        Int(bytes[at]) << 16 | Int(bytes[at + 1]) << 8 | Int(bytes[at + 2])
    }

    private static func prefixSize(_ bytes: UnsafeRawBufferPointer, _ at: Int) -> Int {
        switch bytes[at + 3] {
        case Head.data: bytes[at + 4] & Head.padded != 0 ? min(1, length(bytes, at)) : 0
        case Head.priority: length(bytes, at) >= 4 ? 4 : 0
        default: 0
        }
    }

    private static func head(_ bytes: UnsafeRawBufferPointer, _ at: Int) -> Head {
        let prefix =
            switch prefixSize(bytes, at) {
            case 0: UInt32(0)
            case 1: UInt32(bytes[at + size])
            default: UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: at + size, as: UInt32.self))
            }
        let stream = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: at + 5, as: UInt32.self))
        return Head(
            type: bytes[at + 3], flags: bytes[at + 4], length: length(bytes, at),
            stream: Int32(truncatingIfNeeded: stream & 0x7fff_ffff), prefix: prefix)
    }
}

extension FrameScanner.Head {
    static let data: UInt8 = 0
    static let headers: UInt8 = 1
    static let priority: UInt8 = 2
    static let reset: UInt8 = 3
    static let settings: UInt8 = 4
    static let continuation: UInt8 = 9

    static let endStream: UInt8 = 1
    static let acknowledgement: UInt8 = 1
    static let endHeaders: UInt8 = 4
    static let padded: UInt8 = 8

    /// The cost of this frame for its sender, on any stream. HEADERS frames are free here, because
    /// the number of requests has a separate limit.
    var cost: Int {
        switch type {
        case Self.data: content < 64 && flags & Self.endStream == 0 ? AbuseBudget.control : 0
        case Self.headers: flags & Self.padded == 0 ? 0 : AbuseBudget.control
        case Self.reset: AbuseBudget.reset
        case Self.settings: flags & Self.acknowledgement == 0 ? AbuseBudget.settings : AbuseBudget.control
        default: AbuseBudget.control
        }
    }

    /// Bytes of a DATA frame's payload that are not padding.
    private var content: Int { flags & Self.padded == 0 ? length : length - 1 - Int(prefix) }
}
