import EventLoop
import HTTP
import HTTP1Wire
import World

/// A session of HTTP/1.1: it records the events of `RequestParser` in the form that HTTP/2 has, and
/// writes the answers. It does no I/O.
///
/// Each request is a stream. At most one is open. While it is, further bytes wait in `waiting`, and
/// `isFull` stops the transport from reading more. So a client that does not wait for its answers
/// costs at most the bytes of one read, and requests are answered in order.
///
/// Invariants: a request is answered at most once, and only while it is open. After a fault nothing
/// more is parsed: where the next request would begin is in doubt. Then the answer says
/// `Connection: close`, and is the last one. So is an answer that comes before the end of its
/// request. The rest of that request is recorded as always, and the owner drops it: many clients
/// read no answer before they have written everything.
///
/// Tests: `HTTP1SessionTests`, `HTTP1Tests`, `HTTP1LimitTests`, `HTTP1AbuseTests`; with other
/// clients `HTTP1ToolTests`.
final class HTTP1Session {
    private enum Request {
        case none
        /// The head was reported, and the rest has not come.
        case receiving
        case whole
        /// It was answered, and the rest has not come. The owner drops it.
        case dropping
    }

    private let scratch: SessionScratch
    /// The address that `Host` must name; nil in tests that do not check it.
    private let origin: WebAddress?
    private var parser: RequestParser
    private var request = Request.none
    /// The number of the latest request.
    private(set) var stream: Int32 = 0
    /// When the first byte of the present head came.
    private var headBegan: Instant?
    /// When the first byte of the head came that was reported last, until the owner takes it.
    private var reportedHeadBegan: Instant?
    private var awaitsProceed = false
    private var isAnswered = false
    /// Whether the next answer is the last one.
    private var isLast = false
    /// Whether nothing more is parsed.
    private var isDeaf = false
    /// Whether the connection ends when everything was sent.
    private var isEnding = false
    private var refusesHeads = false
    /// A slice, so that a request is taken from it without a copy of those behind it.
    private var waiting: ArraySlice<UInt8> = []
    private var head: [UInt8] = []
    private var source: BodySource?
    private var headerCharges = 0

    init(limits: RequestParser.Limits, origin: WebAddress?, scratch: SessionScratch) {
        parser = RequestParser(limits: limits)
        self.origin = origin
        self.scratch = scratch
    }

    // MARK: In

    /// Whether bytes wait for the end of the open request, so that no more must be read.
    var isFull: Bool { !waiting.isEmpty }

    /// Whether a request waits for its answer.
    private var isOpen: Bool {
        switch request {
        case .receiving, .whole: true
        case .none, .dropping: false
        }
    }

    /// When the head began that is incomplete; nil if none is.
    var incompleteSince: Instant? { headBegan }

    /// Returns when the head began that was reported last.
    func takeHeadBegan() -> Instant? {
        defer { reportedHeadBegan = nil }
        return reportedHeadBegan
    }

    func receive(_ bytes: UnsafeRawBufferPointer, _ now: Instant) {
        guard !isDeaf else { return }
        if case .whole = request {
            waiting.append(contentsOf: bytes)
            return
        }
        let at = parse(bytes, now)
        if at < bytes.count, !isDeaf { waiting.append(contentsOf: bytes[at...]) }
    }

    /// Parses the bytes that have waited. Returns false if there are none, or a request is open.
    func receiveWaiting(_ now: Instant) -> Bool {
        guard case .none = request, !waiting.isEmpty, !isDeaf else { return false }
        var bytes: ArraySlice<UInt8> = []
        swap(&bytes, &waiting)
        let count = bytes.withUnsafeBytes { parse($0, now) }
        if count < bytes.count, !isDeaf { waiting = bytes.dropFirst(count) }
        return true
    }

    /// Returns the number of bytes that belong to the present request.
    private func parse(_ bytes: UnsafeRawBufferPointer, _ now: Instant) -> Int {
        var at = 0
        loop: while let event = parser.next(bytes, &at) {
            switch event {
            case .head:
                begin(parser.takeHead(), now)
                if isDeaf { return bytes.count }
            case .body(let range):
                let part = UnsafeRawBufferPointer(rebasing: bytes[range]).assumingMemoryBound(to: UInt8.self)
                scratch.record(.data(stream: stream, scratch.keep(part)))
            case .end:
                scratch.record(.ended(stream: stream))
                if case .dropping = request { close() } else { request = .whole }
                break loop
            case .fault(let fault): refuse(fault, now)
            }
        }
        headBegan = parser.isMidHead && !isDeaf ? headBegan ?? now : nil
        return at
    }

    private func begin(_ head: RequestHead, _ now: Instant) {
        awaitsProceed = head.expectsContinue
        if !head.staysOpen { isLast = true }
        let isOurs = origin.map { $0.isNamed(head.host ?? "") } ?? true
        if !isOurs { isDeaf = true }
        open(head, fault: isOurs ? nil : .authority, now)
    }

    private func open(_ head: RequestHead, fault: RequestFault?, _ now: Instant) {
        if head.size > AbuseBudget.freeHeaderBytes {
            headerCharges += (head.size - AbuseBudget.freeHeaderBytes) / AbuseBudget.headerBytesPerCharge
        }
        request = .receiving
        stream = stream == .max ? 1 : stream + 1
        reportedHeadBegan = headBegan ?? now
        headBegan = nil
        var block = HeaderBlock(head)
        block.fault = fault
        scratch.record(stream, &block)
    }

    /// Refuses the present request, unless it is whole or was answered. Nothing more is parsed.
    func refuse(_ fault: RequestFault, _ now: Instant) {
        isDeaf = true
        waiting = []
        switch request {
        case .none: open(parser.takeHead(), fault: fault, now)
        case .receiving: scratch.record(.malformed(stream: stream, fault))
        case .whole: break
        case .dropping: close()
        }
    }

    /// Returns the charges for large heads since the last call.
    func takeHeaderCharges() -> Int {
        defer { headerCharges = 0 }
        return headerCharges
    }

    // MARK: Out

    func submitResponse(_ stream: Int32, _ response: Response, length: Int, date: [UInt8], source: BodySource) {
        guard stream == self.stream, isOpen, !isAnswered, !isEnding else { return }
        isAnswered = true
        if case .receiving = request {
            isLast = true
            // A client that was not told to proceed sends no body.
            if awaitsProceed { isDeaf = true }
        }
        awaitsProceed = false
        head = ResponseHead.bytes(response, length: length, date: date, closes: isLast)
        self.source = source
    }

    func send(into output: inout [UInt8], enough: Int) {
        if refusesHeads, case .none = request, let began = headBegan { refuse(.late, began) }
        if awaitsProceed {
            awaitsProceed = false
            if case .receiving = request, !isEnding { output.append(contentsOf: ResponseHead.proceed) }
        }
        guard isAnswered else { return }
        output.append(contentsOf: head)
        head = []
        guard let source, source.take(enough - output.count, into: &output) else { return }
        finish()
    }

    /// Notes that the whole answer was given to the transport.
    private func finish() {
        source = nil
        isAnswered = false
        scratch.record(.sentEnd(stream: stream))
        if case .receiving = request, !isDeaf { request = .dropping } else { close() }
    }

    /// Ends the present request.
    private func close() {
        request = .none
        scratch.record(.closed(stream: stream, code: 0))
        if isLast { end() }
    }

    // MARK: The end

    var isFinished: Bool { isEnding && !isAnswered }

    /// Ends the session when an answer that was submitted is sent.
    func end() {
        isEnding = true
        isDeaf = true
        waiting = []
    }

    func beginDrain() {
        isLast = true
        if case .none = request, !parser.isMidHead { end() }
    }

    func refuseFurtherRequests() {
        beginDrain()
        refusesHeads = true
    }
}

extension HeaderBlock {
    /// The block that HTTP/2 has for this head.
    init(_ head: RequestHead) {
        method = head.method
        isHead = head.method == "HEAD"
        path = head.path
        hasPath = true
        query = head.query
        contentLength = head.contentLength
        fields = head.fields
    }
}
