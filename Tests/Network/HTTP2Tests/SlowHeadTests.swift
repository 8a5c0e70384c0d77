import HTTP
import Log
import TestSupport
import Testing

@testable import HTTP2

private typealias Kind = RawPeer.Kind

/// The time limit of a request starts with the first byte of its head.
@Suite(.mayBlock) struct SlowHeadTests {
    /// A header block in three frames, byte by byte. The heads of CONTINUATION frames are sent
    /// whole, because libnghttp2 1.52 counts each part of a frame's head as a frame and allows
    /// eight.
    private static func continued(_ head: [UInt8]) -> [[UInt8]] {
        let continuations = [
            RawPeer.frame(Kind.continuation, stream: 3, payload: Array(head[20..<40])),
            RawPeer.frame(Kind.continuation, flags: RawPeer.endHeaders, stream: 3, payload: Array(head[40...])),
        ]
        return RawPeer.frame(Kind.headers, stream: 3, payload: Array(head[..<20])).map { [$0] }
            + continuations.flatMap { [Array($0[..<9])] + $0[9...].map { [$0] } }
    }

    /// The clock advances by a second per byte. Answers on a second connection show that the server
    /// has read the byte.
    @Test(arguments: [false, true]) func slowHeaderEndsAfter60Seconds(inContinuations: Bool) async throws {
        let time = TestTime()
        try await TestServer.with(limits: ServerLimits(), tls: false, time: time) { _ in
            .now(Response(status: 200))
        } _: { server in
            let (slow, other) = (RawPeer(port: server.port), RawPeer(port: server.port))
            for peer in [slow, other] {
                peer.open()
                peer.acknowledgeSettings()
                peer.request(1)
                #expect(peer.next(Kind.headers)?.stream == 1)
            }
            let head = RawPeer.requestHead(more: [UInt8](repeating: 0x90, count: 90))
            let flags = RawPeer.endHeaders | RawPeer.endStream
            let whole = RawPeer.frame(Kind.headers, flags: flags, stream: 3, payload: head)
            let pieces = inContinuations ? Self.continued(head) : whole.map { [$0] }
            var seconds = 0
            while seconds < pieces.count {
                slow.send(pieces[seconds])
                // The first answer may precede the read of the byte, so two requests are sent.
                for stream in [4 * seconds + 3, 4 * seconds + 5] {
                    other.request(UInt32(stream))
                    #expect(other.next(Kind.headers)?.stream == UInt32(stream))
                }
                if slow.hasInput { break }
                seconds += 1
                time.advance(by: .seconds(1))
            }
            #expect((60...61).contains(seconds), "\(server.log.drain())")
            #expect(slow.goAwayCode() == ErrorCode.enhanceYourCalm.rawValue)
        }
    }
}
