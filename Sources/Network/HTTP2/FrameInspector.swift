import World

/// Inspects the frames of one client before libnghttp2 sees them.
///
/// Purpose: libnghttp2 ignores many frames without reporting them, and an attacker can send those
/// without limit. The inspector charges them to the abuse budget. It also finds the errors that
/// libnghttp2 ignores, and knows since when a frame or a header block is incomplete.
///
/// Invariant: a stream up to `settled` that is not open has ended. If we reset it, its frames may
/// still be on their way. If the client ended it, more frames on it are an error.
///
/// Risk: the inspector takes an honest frame for an error, for example a frame that was on its way
/// when we reset its stream. So `noteReset` must be called for every reset. Tests:
/// `FrameInspectorTests`, `AccountingTests`, `SlowHeadTests`.
struct FrameInspector {
    enum Violation: Equatable {
        /// PRIORITY on stream 0, or on a stream that depends on itself; or a new stream with a
        /// lower number than an earlier stream of the client.
        case protocolError
        /// DATA or HEADERS on a stream that the client has ended.
        case streamClosed
        /// More bytes in one header block than any list within the limits can need.
        case headerBlock
    }

    struct Finding {
        var cost = 0
        var violation: Violation?
    }

    /// Encoded bytes of a header block that are free. Each further `headerBytesPerCharge` costs
    /// one.
    private static let freeHeaderBytes = 4096
    private static let headerBytesPerCharge = 256

    private let maxBlockBytes: Int
    private var scanner = FrameScanner(skipping: FrameScanner.preface)
    private var resets = ResetStreams()
    /// The latest stream that the client opened, and the one before.
    private var (highest, second): (Int32, Int32) = (0, 0)
    /// Streams that the client reset in the bytes that are being inspected.
    private var endedNow: [Int32] = []
    /// Whether more frames of the latest header block must follow.
    private var isInBlock = false
    private var blockBytes = 0
    /// Ordinal of the frame that began the latest header block, as `scanner.begun` counts.
    private var blockFrame = 0
    private var latestType: UInt8 = 0
    /// When the current frame or header block began to be incomplete; nil if none is.
    private(set) var incompleteSince: Instant?
    private var incompleteFrame = 0
    /// When the first header block of the last inspected bytes began, if it began in earlier bytes.
    private var firstHeadBegan: Instant?
    /// Whether frames on streams that are not open are tolerated in the bytes that are being
    /// inspected.
    private var ignoresStreams = false

    init(maxBlockBytes: Int) { self.maxBlockBytes = maxBlockBytes }

    /// Notes a stream that we reset or are about to reset, because frames for it may be on their
    /// way.
    mutating func noteReset(_ stream: Int32) { resets.insert(stream) }

    /// Notes the heads of requests over HTTP/1.1, which has no frames.
    /// - Parameter began: when the head began that is complete now.
    /// - Parameter since: when the head began that is incomplete.
    mutating func noteHeads(began: Instant?, incompleteSince since: Instant?) {
        firstHeadBegan = began
        incompleteSince = since
    }

    /// Returns when the header block began that is complete now.
    mutating func takeHeadBegan(_ now: Instant) -> Instant {
        guard let began = firstHeadBegan else { return now }
        firstHeadBegan = nil
        return began
    }

    /// Inspects bytes as they arrive.
    /// - Parameter ignoresStreams: whether frames on streams that are not open are tolerated. After
    ///   a GOAWAY they may belong to streams that we ignore.
    /// - Parameter isOpen: whether a stream is open; its header block was complete before these
    ///   bytes.
    mutating func inspect(
        _ bytes: UnsafeRawBufferPointer, now: Instant, ignoresStreams: Bool, isOpen: (Int32) -> Bool
    ) -> Finding {
        self.ignoresStreams = ignoresStreams
        let headIsComing = headIsComing
        // A stream whose header block is incomplete cannot be open yet.
        let settled = headIsComing ? highest - 1 : highest
        firstHeadBegan = headIsComing ? incompleteSince : nil
        var headBegan = scanner.isMidHead ? incompleteSince : nil
        if !endedNow.isEmpty { endedNow = [] }
        var finding = Finding()
        var at = 0
        while let head = scanner.next(bytes, &at) {
            latestType = head.type
            if let began = headBegan {
                if head.type == FrameScanner.Head.headers { firstHeadBegan = began }
                headBegan = nil
            }
            finding.cost += head.cost
            inspect(head, settled, isOpen, &finding)
            if finding.violation != nil { return finding }
        }
        noteIncomplete(now)
        return finding
    }

    private mutating func inspect(
        _ head: FrameScanner.Head, _ settled: Int32, _ isOpen: (Int32) -> Bool, _ finding: inout Finding
    ) {
        switch head.type {
        case FrameScanner.Head.data: checkIsOpen(head.stream, settled, isOpen, &finding)
        case FrameScanner.Head.headers:
            blockBytes = 0
            blockFrame = scanner.begun
            addToBlock(head, &finding)
            if head.stream > highest, head.stream & 1 == 1 {
                second = highest
                highest = head.stream
            } else {
                // Trailers, or an error.
                finding.cost += AbuseBudget.control
                checkIsOpen(head.stream, settled, isOpen, &finding)
            }
        case FrameScanner.Head.continuation: addToBlock(head, &finding)
        case FrameScanner.Head.priority:
            let dependency = Int32(truncatingIfNeeded: head.prefix & 0x7fff_ffff)
            if head.length == 5, head.stream == 0 || head.stream == dependency {
                finding.violation = .protocolError
            }
        case FrameScanner.Head.reset: if head.stream > settled { endedNow.append(head.stream) }
        default: break
        }
    }

    private mutating func addToBlock(_ head: FrameScanner.Head, _ finding: inout Finding) {
        let before = max(blockBytes, Self.freeHeaderBytes)
        blockBytes += head.length
        if blockBytes > before { finding.cost += (blockBytes - before) / Self.headerBytesPerCharge }
        if blockBytes > maxBlockBytes { finding.violation = .headerBlock }
        isInBlock = head.flags & FrameScanner.Head.endHeaders == 0
    }

    /// Checks that a stream is open. Streams that the client never opened, and open ones above
    /// `settled`, are left to libnghttp2.
    private func checkIsOpen(
        _ stream: Int32, _ settled: Int32, _ isOpen: (Int32) -> Bool, _ finding: inout Finding
    ) {
        guard stream <= highest, stream & 1 == 1 else { return }
        if stream > settled {
            if !endedNow.isEmpty, endedNow.contains(stream) { finding.violation = .streamClosed }
            return
        }
        guard !isOpen(stream) else { return }
        finding.cost += AbuseBudget.closedStream
        guard !ignoresStreams, !resets.contains(stream) else { return }
        finding.violation = stream > second && stream < highest ? .protocolError : .streamClosed
    }

    /// Whether a header block is incomplete: further frames must follow, or the rest of its last
    /// frame.
    private var headIsComing: Bool {
        let isOfBlock = latestType == FrameScanner.Head.headers || latestType == FrameScanner.Head.continuation
        return isInBlock || isOfBlock && scanner.isMidPayload
    }

    private mutating func noteIncomplete(_ now: Instant) {
        guard headIsComing || scanner.isMidFrame else {
            incompleteSince = nil
            return
        }
        let frame = headIsComing ? blockFrame : scanner.begun
        guard incompleteSince == nil || frame != incompleteFrame else { return }
        incompleteSince = now
        incompleteFrame = frame
    }
}

/// The streams of one connection that we reset most recently. It allocates no memory until the
/// first one.
struct ResetStreams {
    /// The capacity: more resets than the budget of a connection allows in a row.
    static let room = 256

    private var streams: [Int32] = []
    private var oldest = 0
    /// The highest stream that was forgotten. All streams up to it count as reset.
    private var forgotten: Int32 = 0

    mutating func insert(_ stream: Int32) {
        guard !contains(stream) else { return }
        guard streams.count == Self.room else {
            streams.append(stream)
            return
        }
        forgotten = max(forgotten, streams[oldest])
        streams[oldest] = stream
        oldest = (oldest + 1) % Self.room
    }

    func contains(_ stream: Int32) -> Bool { stream <= forgotten || streams.contains(stream) }
}
