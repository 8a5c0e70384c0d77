import HTTP
import TestSupport
import Testing

@testable import HTTP2

private typealias Kind = RawPeer.Kind

/// Requests that are answered before their end, from clients that continue to write.
struct EarlyAnswerTests {
    private struct Seen {
        var answer: [UInt8] = []
        var isAnswered = false
        var reset: UInt32?
        var sent = 0
    }

    /// Writes a body of `size` bytes within the window of the stream, and reads the frames that
    /// arrive meanwhile.
    private static func post(_ peer: RawPeer, size: Int) -> Seen {
        var seen = Seen()
        var window = 65_535
        func read(_ frame: RawPeer.Frame) {
            guard frame.stream == 1 else { return }
            switch frame.type {
            case Kind.windowUpdate: window += Int(frame.payload.reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
            case Kind.reset: seen.reset = frame.payload.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            case Kind.data:
                seen.answer += frame.payload
                seen.isAnswered = frame.flags & RawPeer.endStream != 0
            default: break
            }
        }
        peer.open()
        peer.acknowledgeSettings()
        peer.request(1, post: true, end: false)
        while seen.sent < size, seen.reset == nil {
            let part = min(16_384, size - seen.sent)
            while window < part, seen.reset == nil {
                guard let frame = peer.next() else { return seen }
                read(frame)
            }
            guard seen.reset == nil else { break }
            window -= part
            seen.sent += part
            peer.send(
                Kind.data, flags: seen.sent == size ? RawPeer.endStream : 0, stream: 1,
                payload: [UInt8](repeating: 1, count: part))
        }
        // All frames of this stream arrive before the answer to the PING.
        peer.send(Kind.ping, payload: [UInt8](repeating: 9, count: 8))
        while let frame = peer.next() {
            if frame.type == Kind.ping, frame.flags == RawPeer.acknowledgement { break }
            read(frame)
        }
        return seen
    }

    private func posted(size: Int) async throws -> Seen {
        try await TestServer.with(tls: false) { _ in
            .now(Response(status: 200))
        } _: { server in
            let port = server.port
            return await blocking { Self.post(RawPeer(port: port), size: size) }
        }
    }

    /// The server reads the whole body and drops its last part. The stream ends normally.
    @Test(arguments: [100_000, 1_000_000]) func clientReads413WhileStillWriting(size: Int) async throws {
        let seen = try await posted(size: size)
        #expect(seen.answer == Array("too large".utf8))
        #expect(seen.isAnswered)
        #expect(seen.sent == size)
        #expect(seen.reset == nil)
    }

    @Test func streamIsResetBeyondTheDiscardLimit() async throws {
        let seen = try await posted(size: 5_000_000)
        #expect(seen.answer == Array("too large".utf8))
        #expect(seen.isAnswered)
        #expect(seen.reset == ErrorCode.noError.rawValue)
        #expect(seen.sent < 1_500_000)
    }

    /// The client neither writes more nor ends its request. Only its stream is reset.
    @Test func answeredRequestThatNeverEndsIsReset() async throws {
        let time = TestTime()
        try await TestServer.with(limits: ServerLimits(), tls: false, time: time) { _ in
            .now(Response(status: 200))
        } _: { server in
            let port = server.port
            let (code, isAlive) = await blocking { () -> (UInt32?, Bool) in
                let peer = RawPeer(port: port)
                peer.open()
                peer.acknowledgeSettings()
                // The field is content-length: 999999.
                peer.send(
                    Kind.headers, flags: RawPeer.endHeaders, stream: 1,
                    payload: RawPeer.requestHead(post: true, more: [0x0f, 0x0d, 6] + Array("999999".utf8)))
                _ = peer.next(Kind.data)
                time.advance(by: .seconds(61))
                // The PING wakes the loop, which then checks its timers.
                peer.send(Kind.ping, payload: [UInt8](repeating: 9, count: 8))
                let reset = peer.next(Kind.reset)
                peer.request(3)
                let answer = peer.next(Kind.headers)
                return (reset?.payload.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }, answer?.stream == 3)
            }
            #expect(code == ErrorCode.noError.rawValue)
            #expect(isAlive)
        }
    }
}
