import EventLoop
import HTTP
import TestSupport
import Testing

@testable import HTTP2

private typealias Kind = RawPeer.Kind

/// A client that opens more streams than the limit allows.
@Suite(.mayBlock) struct StreamLimitTests {
    /// The limit applies before and after the SETTINGS are acknowledged. After the acknowledgement,
    /// libnghttp2 alone would end the connection.
    @Test(arguments: [true, false]) func streamBeyondTheLimitIsRefusedAndOthersContinue(acknowledged: Bool) async throws
    {
        let waits = Shared<[TestWait]>([])
        try await TestServer.with(tls: false) { _ in
            .later(deadline: .seconds(Patience.seconds), late: { Response(status: 503) }) {
                let wait = TestWait()
                waits.withLock { $0.append(wait) }
                let hold = Hold(duration: .seconds(Patience.seconds), wait: wait) { .response(Response(status: 200)) }
                return .held(hold)
            }
        } _: { server in
            func answer(_ range: Range<Int>) async {
                await waits.until { $0.count == range.upperBound }
                for wait in waits.current[range] {
                    await wait.armed.until { $0 == 1 }
                    wait.fire()
                }
            }
            let peer = RawPeer(port: server.port)
            peer.open()
            let settings = try #require(peer.next(Kind.settings)).payload
            // MAX_CONCURRENT_STREAMS on the wire.
            let entries = stride(from: 0, to: settings.count, by: 6).map { Array(settings[$0..<$0 + 6]) }
            #expect(entries.filter { $0[1] == 3 } == [[0, 3, 0, 0, 0, 100]])
            if acknowledged { peer.acknowledgeSettings() }
            for number in 0..<UInt32(100) { peer.request(2 * number + 1) }
            for stream: UInt32 in [201, 203] {
                peer.request(stream)
                let refused = try #require(peer.next { $0.type == Kind.reset || $0.type == Kind.goAway })
                #expect(refused == RawPeer.Frame(type: Kind.reset, flags: 0, stream: stream, payload: [0, 0, 0, 7]))
            }
            await answer(0..<100)
            var answered: Set<UInt32> = []
            while answered.count < 100, let frame = peer.next(Kind.headers) { answered.insert(frame.stream) }
            #expect(answered.count == 100)
            // A stream is free again.
            peer.request(205)
            await answer(100..<101)
            #expect(peer.next(Kind.headers)?.stream == 205)
        }
    }
}
