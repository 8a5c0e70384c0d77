import Testing
import World

@testable import HTTP2

private func at(_ seconds: Double) -> Instant { Instant(nanoseconds: Int64(seconds * 1e9)) }
private typealias Kind = RawPeer.Kind

/// Frames on closed streams, invalid PRIORITY frames, and the age of incomplete frames.
struct FrameInspectorTests {
    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    private func inspector() -> FrameInspector {
        var inspector = FrameInspector(maxBlockBytes: 65_536)
        _ = Self.inspect(&inspector, Self.preface)
        return inspector
    }

    private static func inspect(
        _ inspector: inout FrameInspector, _ bytes: [UInt8], at seconds: Double = 0, open: Set<Int32> = [],
        ignoresStreams: Bool = false
    ) -> FrameInspector.Finding {
        bytes.withUnsafeBytes {
            inspector.inspect($0, now: at(seconds), ignoresStreams: ignoresStreams) { open.contains($0) }
        }
    }

    private static func request(_ stream: UInt32, end: Bool = false) -> [UInt8] {
        RawPeer.frame(
            Kind.headers, flags: RawPeer.endHeaders | (end ? RawPeer.endStream : 0), stream: stream,
            payload: RawPeer.requestHead(post: true))
    }

    private static func data(_ stream: UInt32) -> [UInt8] {
        RawPeer.frame(Kind.data, stream: stream, payload: [UInt8](repeating: 1, count: 100))
    }

    private static func reset(_ stream: UInt32) -> [UInt8] {
        RawPeer.frame(Kind.reset, stream: stream, payload: [0, 0, 0, 8])
    }

    /// Stream 1 is opened and reset. Then DATA or HEADERS arrive on it.
    @Test(arguments: [true, false]) func frameOnAStreamEndedByThePeerIsAnError(inOneRead: Bool) {
        for late in [Self.data(1), Self.request(1)] {
            var inspector = inspector()
            let first = Self.request(1) + Self.reset(1)
            if inOneRead {
                #expect(Self.inspect(&inspector, first + late).violation == .streamClosed)
            } else {
                #expect(Self.inspect(&inspector, first).violation == nil)
                #expect(Self.inspect(&inspector, late).violation == .streamClosed)
            }
        }
    }

    @Test func frameOnAStreamWeResetIsChargedAndIgnored() {
        var inspector = inspector()
        _ = Self.inspect(&inspector, Self.request(1))
        inspector.noteReset(1)
        for late in [Self.data(1), Self.request(1)] {
            let finding = Self.inspect(&inspector, late)
            #expect(finding.violation == nil)
            #expect(finding.cost >= AbuseBudget.closedStream)
        }
    }

    @Test func fragmentedFramesOnOpenStreamsAreValid() {
        let bytes = Self.request(1) + Self.data(1) + Self.request(3) + Self.data(1) + Self.data(3) + Self.request(1)
        for size in 1...bytes.count {
            var inspector = inspector()
            // The owner knows a stream as open after the read that completes its header block.
            var open: Set<Int32> = []
            for start in stride(from: 0, to: bytes.count, by: size) {
                let end = min(start + size, bytes.count)
                let finding = Self.inspect(&inspector, Array(bytes[start..<end]), open: open)
                #expect(finding.violation == nil, "reads of \(size), at \(start)")
                if end >= Self.request(1).count { open.insert(1) }
                if end >= Self.request(1).count * 2 + Self.data(1).count { open.insert(3) }
            }
        }
    }

    @Test func frameOnASkippedStreamIsAnError() {
        var inspector = inspector()
        _ = Self.inspect(&inspector, Self.request(5))
        #expect(Self.inspect(&inspector, Self.request(3), open: [5]).violation == .protocolError)
    }

    /// After the server has sent GOAWAY, frames on unknown streams are ignored.
    @Test func unknownStreamAfterGoAwayIsIgnored() {
        var inspector = inspector()
        _ = Self.inspect(&inspector, Self.request(1))
        let finding = Self.inspect(&inspector, Self.data(1), ignoresStreams: true)
        #expect(finding.violation == nil)
        #expect(finding.cost > 0)
    }

    @Test func forgottenResetsAreChargedAsResets() {
        var resets = ResetStreams()
        for stream in 0..<Int32(2 * ResetStreams.room) { resets.insert(2 * stream + 1) }
        for stream in 0..<Int32(2 * ResetStreams.room) { #expect(resets.contains(2 * stream + 1)) }
        #expect(!resets.contains(Int32(4 * ResetStreams.room + 1)))
    }

    @Test func priorityOnStream0OrOnItselfIsAnError() {
        func violation(_ stream: UInt32, on dependency: UInt8) -> FrameInspector.Violation? {
            var inspector = inspector()
            let frame = RawPeer.frame(Kind.priority, stream: stream, payload: [0x80, 0, 0, dependency, 16])
            return Self.inspect(&inspector, frame).violation
        }
        #expect(violation(0, on: 1) == .protocolError)
        #expect(violation(3, on: 3) == .protocolError)
        #expect(violation(3, on: 1) == nil)
    }

    @Test func headersOnEndedStreamsAreCharged() {
        var inspector = inspector()
        _ = Self.inspect(&inspector, Self.request(1))
        #expect(Self.inspect(&inspector, Self.request(1), open: [1]).cost == AbuseBudget.control)
        inspector.noteReset(1)
        #expect(Self.inspect(&inspector, Self.request(1)).cost == AbuseBudget.control + AbuseBudget.closedStream)
    }

    @Test func headerBlockIsChargedPerByte() {
        var inspector = inspector()
        let part = RawPeer.frame(Kind.headers, stream: 1, payload: [UInt8](repeating: 0x90, count: 16_384))
        #expect(Self.inspect(&inspector, part).cost == (16_384 - 4096) / 256)
        let more = RawPeer.frame(Kind.continuation, stream: 1, payload: [UInt8](repeating: 0x90, count: 16_384))
        #expect(Self.inspect(&inspector, more).cost == AbuseBudget.control + 16_384 / 256)
        #expect(Self.inspect(&inspector, more + more).violation == nil)
        #expect(Self.inspect(&inspector, more).violation == .headerBlock)
    }

    // MARK: Time

    @Test func incompleteFrameIsTimedFromItsFirstByte() {
        var inspector = inspector()
        let request = Self.request(1)
        for (second, byte) in request.dropLast().enumerated() {
            _ = Self.inspect(&inspector, [byte], at: Double(second))
            #expect(inspector.incompleteSince == at(0), "\(second)")
        }
        _ = Self.inspect(&inspector, [request[request.count - 1]], at: 100)
        #expect(inspector.incompleteSince == nil)
        #expect(inspector.takeHeadBegan(at(100)) == at(0))
        #expect(inspector.takeHeadBegan(at(100)) == at(100))
    }

    @Test func headerBlockIsIncompleteUntilItsLastContinuation() {
        var inspector = inspector()
        _ = Self.inspect(&inspector, RawPeer.frame(Kind.headers, stream: 1, payload: [0x82]), at: 1)
        _ = Self.inspect(&inspector, RawPeer.frame(Kind.continuation, stream: 1, payload: [0x86]), at: 2)
        #expect(inspector.incompleteSince == at(1))
        let last = RawPeer.frame(Kind.continuation, flags: RawPeer.endHeaders, stream: 1, payload: [0x84])
        _ = Self.inspect(&inspector, last, at: 3)
        #expect(inspector.incompleteSince == nil)
        #expect(inspector.takeHeadBegan(at(3)) == at(1))
    }

    /// The head of the block's last frame has END_HEADERS, and the payload is still missing.
    @Test(arguments: 28...49) func headerBlockEndsWithItsLastFrame(cut: Int) {
        let head = RawPeer.requestHead(post: true, more: [UInt8](repeating: 0x90, count: 30))
        let block =
            RawPeer.frame(Kind.headers, stream: 1, payload: Array(head[..<20]))
            + RawPeer.frame(Kind.continuation, flags: RawPeer.endHeaders, stream: 1, payload: Array(head[20...]))
        var inspector = inspector()
        _ = Self.inspect(&inspector, Array(block[..<cut]), at: 1)
        #expect(inspector.incompleteSince == at(1))
        _ = Self.inspect(&inspector, Array(block[cut..<(cut + 1)]), at: 2)
        #expect(inspector.incompleteSince == at(1))
        // The stream opens only with these bytes.
        let rest = Self.inspect(&inspector, Array(block[(cut + 1)...]) + Self.data(1), at: 3)
        #expect(rest.violation == nil && rest.cost <= AbuseBudget.control)
        #expect(inspector.incompleteSince == nil && inspector.takeHeadBegan(at(3)) == at(1))
    }

    @Test func nextFrameRestartsTheTimer() {
        var inspector = inspector()
        let data = Self.data(1)
        _ = Self.inspect(&inspector, Self.request(1) + data[..<20], at: 1)
        _ = Self.inspect(&inspector, Array(data[20...] + data[..<20]), at: 2, open: [1])
        #expect(inspector.incompleteSince == at(2))
    }
}
