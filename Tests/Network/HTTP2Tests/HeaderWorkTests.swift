import EventLoop
import HTTP
import TestSupport
import Testing

@testable import HTTP2

private typealias Kind = RawPeer.Kind

/// The work of the server for header blocks: decoded fields and bytes per received byte.
struct HeaderWorkTests {
    private static let limits = ServerLimits()
    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + RawPeer.frame(Kind.settings)

    /// Returns the work for each element of `reads` in a session without a connection.
    private func work(_ reads: [[UInt8]]) -> [HeaderWork] {
        let scratch = SessionScratch()
        let session = Session(
            role: .server, headerBytes: Self.limits.headerBytes, headerCount: Self.limits.headerCount,
            scratch: scratch)
        #expect(Self.preface.withUnsafeBytes { session.receive($0) })
        return reads.map { bytes in
            let before = scratch.headerWork
            #expect(bytes.withUnsafeBytes { session.receive($0) })
            scratch.clear()
            return HeaderWork(
                fields: scratch.headerWork.fields - before.fields, bytes: scratch.headerWork.bytes - before.bytes,
                refused: scratch.headerWork.refused - before.refused)
        }
    }

    private func request(_ stream: UInt32, _ more: [UInt8]) -> [UInt8] {
        RawPeer.frame(
            Kind.headers, flags: RawPeer.endHeaders | RawPeer.endStream, stream: stream,
            payload: RawPeer.requestHead(more: more))
    }

    /// A field of 4,000 bytes that is added to the HPACK table, where 0xbe refers to it.
    private func large(last: UInt8) -> [UInt8] {
        [0x40, 1, 97, 0x7f, 0xa1, 0x1e] + [UInt8](repeating: 98, count: 3999) + [last]
    }

    /// libnghttp2 checks every character of the field, whether it accepts the field or not.
    @Test(arguments: [98, 10] as [UInt8]) func indexedHeaderBombIsDecodedToTwiceTheLimit(last: UInt8) {
        let bomb = request(3, [UInt8](repeating: 0xbe, count: 16_000))
        let work = work([request(1, large(last: last)), bomb])
        #expect(work[1].bytes <= 2 * Self.limits.headerBytes + 4096)
        #expect(work[1].fields <= 25)
        #expect(work[1].refused == 1)
    }

    @Test func manyFieldsAreDecodedToTwiceTheLimit() {
        // 0x90 is `accept-encoding: gzip, deflate` in the static table.
        let work = work([request(1, [UInt8](repeating: 0x90, count: 16_000))])
        #expect(work[0].fields == 2 * Self.limits.headerCount + 1)
        #expect(work[0].refused == 1)
    }

    @Test func manyBombsInOneReadAreDecodedTo16Lists() {
        let bombs = (1...450).flatMap { request(UInt32(2 * $0 + 1), [UInt8](repeating: 0xbe, count: 17)) }
        #expect(bombs.count < 16_384)
        let work = work([request(1, large(last: 98)), bombs, request(1001, [])])
        // After the limit, one field of each block is decoded.
        #expect(work[1].bytes <= 16 * Self.limits.headerBytes + 4096 + 450 * 64)
        #expect(work[1].refused > 400)
        // The next read has its own limit.
        #expect(work[2] == HeaderWork(fields: 4, bytes: 4 * 32 + 38, refused: 0))
    }

    @Test func headerBlocksAreChargedByDecodedBytes() throws {
        let scratch = SessionScratch()
        let session = Session(
            role: .server, headerBytes: Self.limits.headerBytes, headerCount: Self.limits.headerCount,
            scratch: scratch)
        _ = Self.preface.withUnsafeBytes { session.receive($0) }
        func charges(_ bytes: [UInt8]) -> Int {
            _ = bytes.withUnsafeBytes { session.receive($0) }
            scratch.clear()
            return session.takeHeaderCharges()
        }
        #expect(charges(request(1, [])) == 0)
        #expect(charges(request(3, large(last: 98))) == 0)
        // The blocks are within the limits, over them (431), and cut off.
        #expect(charges(request(5, [UInt8](repeating: 0xbe, count: 5))) == 15)
        #expect(charges(request(7, [UInt8](repeating: 0xbe, count: 10))) == 35)
        #expect(charges(request(9, [UInt8](repeating: 0xbe, count: 100))) >= 60)
        #expect(session.takeHeaderCharges() == 0)
    }

    @Test func oversizedHeaderBlockEndsTheConnection() async throws {
        let code = try await TestServer.with(tls: false) { _ in
            .now(Response(status: 200))
        } _: { server in
            let port = server.port
            return await blocking { () -> UInt32? in
                let peer = RawPeer(port: port)
                peer.open()
                peer.send(Kind.headers, stream: 1, payload: [UInt8](repeating: 0x90, count: 16_384))
                for _ in 0..<4 {
                    peer.send(Kind.continuation, stream: 1, payload: [UInt8](repeating: 0x90, count: 16_384))
                }
                return peer.goAwayCode()
            }
        }
        #expect(code == ErrorCode.enhanceYourCalm.rawValue)
    }

    /// The budget ends the connection before many bytes are decoded, however few bytes are
    /// received.
    @Test func bombDecodingStopsAtTheAbuseBudget() async throws {
        // The clock does not move, so the budget does not refill on a slow machine.
        try await TestServer.with(tls: false, time: TestTime()) { _ in
            .now(Response(status: 200))
        } _: { server in
            let port = server.port
            let (code, sent) = await blocking { () -> (UInt32?, Int) in
                let peer = RawPeer(port: port)
                peer.open()
                peer.acknowledgeSettings()
                var sent = 0
                while sent < 2000 {
                    peer.send(HostileTests.Flood.indexedBomb.piece(sent))
                    sent += 1
                    // Each block is answered before the next is sent, so that no read contains two.
                    let frame = peer.next { [Kind.headers, Kind.reset, Kind.goAway].contains($0.type) }
                    guard let frame, frame.type != Kind.goAway else {
                        return (frame?.payload[4..<8].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }, sent)
                    }
                }
                return (nil, sent)
            }
            #expect(code == ErrorCode.enhanceYourCalm.rawValue)
            let work = await server.loop.perform { server.server.value.buffers.session.headerWork }
            #expect(work.bytes <= 70_000 * sent)
            #expect(work.bytes < 4 * 1024 * Self.limits.abuseCapacity, "after \(sent) requests")
        }
    }
}
