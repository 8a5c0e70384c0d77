import HTTP

/// A parser of requests over HTTP/1.1: bytes in, events out, without I/O.
///
/// Purpose: it accepts only what every implementation reads in one way. Two readers that disagree on
/// the end of a request let an attacker smuggle one past the first of them. So each form that RFC
/// 9112 merely tolerates is a fault: a bare LF, a folded field, a list of equal lengths.
///
/// Invariants: the events depend on the bytes alone, and not on how reads divide them. The parser
/// holds at most one line, and takes no byte behind the end of a request before it is asked for the
/// next one. After a fault there are no more events.
///
/// Tests: `RequestParserTests`; over connections `HTTP1Tests`.
public struct RequestParser: Sendable {
    public struct Limits: Sendable {
        /// The size of a head, as `RequestHead.size` counts it.
        public let headBytes: Int
        public let fields: Int
        /// The bytes of a line with the size of a chunk.
        public var chunkLine = 64
        /// The bytes of the extensions of all chunks of a body.
        public var extensionBytes = 256

        public init(headBytes: Int, fields: Int) {
            self.headBytes = headBytes
            self.fields = fields
        }
    }

    public enum Event: Sendable, Equatable {
        /// `head` is complete.
        case head
        /// Bytes of the body, as a range of the bytes that are read.
        case body(Range<Int>)
        /// The request is complete.
        case end
        case fault(RequestFault)
    }

    private enum State {
        case requestLine
        case fields
        case body(left: Int)
        case chunkSize
        case chunk(left: Int)
        case chunkEnd
        /// After the last chunk: the end of the body, since there are no trailers.
        case bodyEnd
        /// Everything has come, and `end` is the next event.
        case complete
        case failed
    }

    private enum Line {
        case incomplete
        /// A line in the bytes that are read.
        case range(Range<Int>)
        /// A line of which a part came before.
        case joined([UInt8])
        case fault(RequestFault)
    }

    private let limits: Limits
    private var state = State.requestLine
    /// The part of a line that has come.
    private var part: [UInt8] = []
    /// Whether the latest byte was the CR at the end of a line.
    private var hasReturn = false
    private var extensionBytes = 0
    /// The head of the present request, as far as it has come.
    public private(set) var head = RequestHead()

    public init(limits: Limits) { self.limits = limits }

    /// Whether a head has begun and is not complete.
    public var isMidHead: Bool {
        switch state {
        case .requestLine: !part.isEmpty || hasReturn
        case .fields: true
        default: false
        }
    }

    /// The size of what is held between two reads: a part of a line, and the head so far.
    package var heldBytes: Int { part.count + head.size }

    /// Returns the head, and keeps none of it. Call it once, after `Event.head` or a fault.
    public mutating func takeHead() -> RequestHead {
        defer { head = RequestHead() }
        return head
    }

    /// Returns the next event, and moves `at` behind what it has read. Returns nil at the end of
    /// `bytes`. After `end` the next call begins with the next request.
    public mutating func next(_ bytes: UnsafeRawBufferPointer, _ at: inout Int) -> Event? {
        while true {
            let event: Event?
            switch state {
            case .complete:
                state = .requestLine
                return .end
            case .body(let left): return body(left, bytes, &at)
            case .chunk(let left): return chunk(left, bytes, &at)
            case .failed: return nil
            case .requestLine, .fields, .chunkSize, .chunkEnd, .bodyEnd:
                switch readLine(bytes, &at) {
                case .incomplete: return nil
                case .range(let range): event = read(UnsafeRawBufferPointer(rebasing: bytes[range]))
                case .joined(let line): event = line.withUnsafeBytes { read($0) }
                case .fault(let fault): event = .fault(fault)
                }
            }
            guard let event else { continue }
            if case .fault = event {
                state = .failed
                part = []
            }
            return event
        }
    }

    // MARK: Lines

    /// The bytes that the present line may have, and the fault if it has more.
    private var lineLimit: (bytes: Int, fault: RequestFault) {
        switch state {
        case .chunkSize: (limits.chunkLine, .chunk)
        case .chunkEnd: (0, .chunk)
        case .bodyEnd: (0, .trailers)
        default: (limits.headBytes - head.size, .headSize)
        }
    }

    private mutating func readLine(_ bytes: UnsafeRawBufferPointer, _ at: inout Int) -> Line {
        let start = at
        let limit = lineLimit
        while at < bytes.count {
            let byte = bytes[at]
            if hasReturn {
                guard byte == Byte.lineFeed else { return .fault(.lineEnd) }
                hasReturn = false
                at += 1
                // The CR may have come before these bytes.
                return line(bytes, start..<max(start, at - 2))
            }
            if byte == Byte.carriageReturn {
                hasReturn = true
            } else if !Byte.isOfLine(byte) {
                return .fault(byte == Byte.lineFeed ? .lineEnd : .controlCharacter)
            } else if part.count + at - start >= limit.bytes {
                return .fault(limit.fault)
            }
            at += 1
        }
        part.append(contentsOf: bytes[start..<(hasReturn ? max(start, at - 1) : at)])
        return .incomplete
    }

    private mutating func line(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> Line {
        guard !part.isEmpty else { return .range(range) }
        var line: [UInt8] = []
        swap(&line, &part)
        line.append(contentsOf: bytes[range])
        return .joined(line)
    }

    /// Reads a complete line. Returns nil if it makes no event.
    private mutating func read(_ line: UnsafeRawBufferPointer) -> Event? {
        switch state {
        case .requestLine:
            if let fault = measure(line) ?? head.readRequestLine(line) { return .fault(fault) }
            state = .fields
            return nil
        case .fields:
            guard line.isEmpty else { return (measure(line) ?? head.readField(line)).map { .fault($0) } }
            return headEnded()
        case .chunkSize: return chunkSize(line).map { .fault($0) }
        case .chunkEnd:
            state = .chunkSize
            return nil
        case .bodyEnd:
            state = .complete
            return nil
        case .body, .chunk, .complete, .failed: return nil
        }
    }

    private mutating func measure(_ line: UnsafeRawBufferPointer) -> RequestFault? {
        head.size += line.count + 32
        head.count += 1
        // The request line is not a field.
        return head.size > limits.headBytes || head.count > limits.fields + 1 ? .headSize : nil
    }

    private mutating func headEnded() -> Event {
        if let fault = head.complete() { return .fault(fault) }
        extensionBytes = 0
        if head.isChunked {
            state = .chunkSize
        } else if head.hasBody {
            state = .body(left: head.contentLength ?? 0)
        } else {
            state = .complete
        }
        return .head
    }

    // MARK: Bodies

    private mutating func body(_ left: Int, _ bytes: UnsafeRawBufferPointer, _ at: inout Int) -> Event? {
        guard at < bytes.count else { return nil }
        let range = at..<(at + min(left, bytes.count - at))
        at = range.upperBound
        state = range.count == left ? .complete : .body(left: left - range.count)
        return .body(range)
    }

    private mutating func chunk(_ left: Int, _ bytes: UnsafeRawBufferPointer, _ at: inout Int) -> Event? {
        guard at < bytes.count else { return nil }
        let range = at..<(at + min(left, bytes.count - at))
        at = range.upperBound
        state = range.count == left ? .chunkEnd : .chunk(left: left - range.count)
        return .body(range)
    }

    private mutating func chunkSize(_ line: UnsafeRawBufferPointer) -> RequestFault? {
        var size = 0
        var digits = 0
        for byte in line {
            guard let digit = Byte.hexadecimal(byte) else { break }
            size = size << 4 | digit
            digits += 1
            guard digits <= 8 else { return .chunk }
        }
        guard digits > 0, digits == line.count || line[digits] == Byte.semicolon else { return .chunk }
        extensionBytes += line.count - digits
        guard extensionBytes <= limits.extensionBytes else { return .chunk }
        state = size == 0 ? .bodyEnd : .chunk(left: size)
        return nil
    }
}
