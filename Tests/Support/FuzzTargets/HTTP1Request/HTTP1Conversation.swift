import HTTP
import HTTP1Wire

/// A server that answers each whole request with 200, without I/O.
public struct HTTP1Conversation {
    /// The part that must not depend on how reads divide the bytes.
    public struct Outcome: Equatable {
        public fileprivate(set) var answers: [Int] = []
        public fileprivate(set) var isClosed = false
        public fileprivate(set) var heads: [RequestHead] = []
        public fileprivate(set) var bodies: [[UInt8]] = []
        /// The bytes of a body whose end has not come.
        public fileprivate(set) var unfinished: [UInt8] = []
    }

    private static let origin = WebAddress(secure: true, host: "localhost", port: nil)
    private var parser: RequestParser
    private var isLast = false
    private var hasFault = false
    public private(set) var outcome = Outcome()
    public private(set) var eventsAfterFault = 0
    /// The most bytes that the parser held between two reads.
    public private(set) var mostHeld = 0

    public init(limits: RequestParser.Limits = RequestParser.Limits(headBytes: 32_768, fields: 100)) {
        parser = RequestParser(limits: limits)
    }

    public mutating func receive(_ bytes: some Collection<UInt8>) {
        if bytes.withContiguousStorageIfAvailable({ read(UnsafeRawBufferPointer($0)) }) == nil {
            Array(bytes).withUnsafeBytes { read($0) }
        }
        mostHeld = max(mostHeld, parser.heldBytes)
    }

    private mutating func read(_ bytes: UnsafeRawBufferPointer) {
        var at = 0
        while !outcome.isClosed, let event = parser.next(bytes, &at) { handle(event, bytes) }
        while hasFault, parser.next(bytes, &at) != nil { eventsAfterFault += 1 }
    }

    private mutating func handle(_ event: RequestParser.Event, _ bytes: UnsafeRawBufferPointer) {
        switch event {
        case .head:
            let head = parser.takeHead()
            outcome.heads.append(head)
            isLast = !head.staysOpen
            if !Self.origin.isNamed(head.host ?? "") { refuse(.authority) }
        case .body(let range): outcome.unfinished += bytes[range]
        case .end:
            outcome.answers.append(200)
            outcome.bodies.append(outcome.unfinished)
            outcome.unfinished = []
            outcome.isClosed = isLast
        case .fault(let fault):
            hasFault = true
            refuse(fault)
        }
    }

    private mutating func refuse(_ fault: RequestFault) {
        outcome.answers.append(fault.status)
        outcome.isClosed = true
    }
}
