import EventLoop
import Glibc
import HTTP
import TestSupport
import Testing
import World

@testable import HTTP2

private typealias Kind = RawPeer.Kind

/// Peers that send frames which no library sends. They use plain TCP, because these attacks are
/// independent of TLS.
struct HostileTests {
    private static let ok = Response(status: 200, body: Array("ok".utf8))
    private static let calm: UInt32 = 11

    /// Runs `attack` against a server, then checks that the server still serves others.
    private func attacked<Value: Sendable>(
        limits: ServerLimits = .patient, body: [UInt8] = Array("ok".utf8), receiveBuffer: Int32? = nil,
        andServesOthers: Bool = true, time: any TimeSource = SystemTime(),
        _ attack: @escaping @Sendable (RawPeer) -> Value
    ) async throws -> Value {
        try await TestServer.with(limits: limits, tls: false, time: time) { _ in
            .now(Response(status: 200, body: body))
        } _: { server in
            let port = server.port
            let value = await blocking { attack(RawPeer(port: port, receiveBuffer: receiveBuffer)) }
            if andServesOthers {
                let client = try await server.client(tls: false)
                #expect(try await client.send("GET", "/").get().status == 200)
            }
            return value
        }
    }

    enum Flood: CaseIterable, CustomTestStringConvertible {
        case ping, settings, priority, unknown, windowUpdate, emptyData, rapidReset, resetOfHalf
        /// Errors that nghttp2 limits to one stream, so that the server resets it.
        case windowOverflow, malformedHead, wrongLength, tooManyStreams
        /// Frames that libnghttp2 decodes or drops without a report: frames on closed streams,
        /// padding in DATA, and large header lists from few bytes.
        case headersAfterReset, dataAfterReset, headersAfterEnd, paddedData, indexedBomb, ignoredFields
        var testDescription: String { "\(self)" }

        /// Returns piece `number` of the flood.
        func piece(_ number: Int) -> [UInt8] {
            let stream = UInt32(2 * number + 1)
            let open = RawPeer.frame(
                Kind.headers, flags: RawPeer.endHeaders | RawPeer.endStream, stream: stream,
                payload: RawPeer.requestHead())
            let halfOpen = RawPeer.frame(
                Kind.headers, flags: RawPeer.endHeaders, stream: stream, payload: RawPeer.requestHead(post: true))
            switch self {
            case .ping: return RawPeer.frame(Kind.ping, payload: [UInt8](repeating: 7, count: 8))
            case .settings: return RawPeer.frame(Kind.settings, payload: [0, 4, 0, 1, 0, 0])
            case .priority:
                return RawPeer.frame(Kind.priority, stream: stream, payload: [0, 0, 0, 0, 16])
            case .unknown: return RawPeer.frame(0xbb, payload: [1, 2, 3])
            case .windowUpdate: return RawPeer.frame(Kind.windowUpdate, payload: [0, 0, 0, 1])
            case .emptyData:
                return (number == 0 ? halfOpen : []) + RawPeer.frame(Kind.data, stream: 1)
            case .rapidReset: return open + RawPeer.frame(Kind.reset, stream: stream, payload: [0, 0, 0, 8])
            case .windowOverflow:
                return halfOpen + RawPeer.frame(Kind.windowUpdate, stream: stream, payload: [0x7f, 255, 255, 255])
            case .malformedHead:
                return RawPeer.frame(
                    Kind.headers, flags: RawPeer.endHeaders | RawPeer.endStream, stream: stream, payload: [0x82, 0x86])
            case .wrongLength:
                // The field is content-length: 9, but the body has one byte.
                return RawPeer.frame(
                    Kind.headers, flags: RawPeer.endHeaders, stream: stream,
                    payload: RawPeer.requestHead(post: true, more: [0x0f, 0x0d, 1, UInt8(ascii: "9")]))
                    + RawPeer.frame(Kind.data, flags: RawPeer.endStream, stream: stream, payload: [1])
            case .tooManyStreams: return halfOpen
            case .resetOfHalf: return halfOpen + RawPeer.frame(Kind.reset, stream: stream, payload: [0, 0, 0, 8])
            default: return behindTheFirst(number, halfOpen)
            }
        }

        /// Returns a piece of a flood whose first piece differs from the others.
        private func behindTheFirst(_ number: Int, _ halfOpen: [UInt8]) -> [UInt8] {
            let stream = UInt32(2 * number + 1)
            switch self {
            case .headersAfterReset, .dataAfterReset:
                // The request is malformed, so the server resets stream 1.
                guard number > 0 else {
                    return RawPeer.frame(
                        Kind.headers, flags: RawPeer.endHeaders, stream: 1, payload: [0x83, 0x86])
                }
                return self == .dataAfterReset
                    ? RawPeer.frame(Kind.data, stream: 1, payload: [UInt8](repeating: 1, count: 100))
                    : RawPeer.frame(
                        Kind.headers, flags: RawPeer.endHeaders, stream: 1, payload: RawPeer.requestHead(post: true))
            case .headersAfterEnd:
                return RawPeer.frame(
                    Kind.headers, flags: RawPeer.endHeaders | RawPeer.endStream, stream: 1,
                    payload: number == 0 ? RawPeer.requestHead() : [0x00, 1, 97, 1, 97])
            case .paddedData:
                return (number == 0 ? halfOpen : [])
                    + RawPeer.frame(
                        Kind.data, flags: 8, stream: 1, payload: [255] + [UInt8](repeating: 0, count: 255))
            case .indexedBomb: return Self.bomb(stream, name: 97, last: 98, first: number == 0)
            // The value ends in a line feed, which is not allowed in a field.
            case .ignoredFields: return Self.bomb(stream, name: 97, last: 10, first: number == 0)
            default: return []
            }
        }

        /// Returns a request that adds a field of 4,000 bytes to the table, or refers to it 200
        /// times.
        static func bomb(_ stream: UInt32, name: UInt8, last: UInt8, first: Bool) -> [UInt8] {
            let large: [UInt8] = [0x40, 1, name, 0x7f, 0xa1, 0x1e] + [UInt8](repeating: 98, count: 3999) + [last]
            return RawPeer.frame(
                Kind.headers, flags: RawPeer.endHeaders | RawPeer.endStream, stream: stream,
                payload: RawPeer.requestHead(more: first ? large : [UInt8](repeating: 0xbe, count: 200)))
        }
    }

    @Test(arguments: Flood.allCases) func floodEndsWithEnhanceYourCalm(flood: Flood) async throws {
        // The clock of the server does not move, so the budget does not refill.
        let (code, pieces) = try await attacked(time: TestTime()) { peer -> (UInt32?, Int) in
            peer.open()
            peer.acknowledgeSettings()
            var sent = 0
            // Twenty pieces are sent at a time. The PING shows that the server has read them.
            while sent < 20_000 {
                peer.send((sent..<sent + 20).flatMap(flood.piece))
                sent += 20
                let mark: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
                peer.send(Kind.ping, payload: mark)
                let heard = peer.next { frame in
                    frame.type == Kind.goAway
                        || frame.type == Kind.ping && frame.flags == RawPeer.acknowledgement && frame.payload == mark
                }
                guard let heard, heard.type == Kind.ping else {
                    return (heard?.payload[4..<8].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }, sent)
                }
            }
            return (nil, sent)
        }
        // HEADERS on a stream that the peer has closed are a separate error.
        #expect(code == (flood == .headersAfterEnd ? 5 : Self.calm), "after \(pieces)")
    }

    @Test(arguments: [Flood.ping, .settings, .rapidReset, .windowOverflow])
    func floodByANonReadingClientEnds(flood: Flood) async throws {
        let ended = try await attacked(receiveBuffer: 2048) { peer -> Bool in
            peer.open()
            var sent = 0
            while sent < 5_000_000, peer.send((sent..<sent + 100).flatMap(flood.piece)) { sent += 100 }
            return sent < 5_000_000
        }
        #expect(ended)
    }

    @Test func endlessContinuationsAreRefused() async throws {
        let ended = try await attacked { peer -> Bool in
            peer.open()
            peer.send(Kind.headers, stream: 1, payload: RawPeer.requestHead())
            for _ in 0..<9 { peer.send(Kind.continuation, stream: 1, payload: [0x00, 1, 97, 1, 97]) }
            return peer.isEnded()
        }
        #expect(ended)
    }

    @Test func hpackIndexBombIsCutOff() async throws {
        let code = try await attacked { peer -> [UInt8]? in
            peer.open()
            // The first field adds a large entry to the table. Each 0xbe refers to it again.
            let large: [UInt8] = [0x40, 1, 97, 0x7f, 0xa1, 0x1e] + [UInt8](repeating: 98, count: 4000)
            let bomb = [UInt8](repeating: 0xbe, count: 12_000)
            peer.send(
                Kind.headers, flags: RawPeer.endHeaders | RawPeer.endStream, stream: 1,
                payload: RawPeer.requestHead(more: large + bomb))
            return peer.next(Kind.reset)?.payload
        }
        #expect(code == [0, 0, 0, 2])
    }

    @Test func tooManySettingsAreRefused() async throws {
        let code = try await attacked { peer -> UInt32? in
            peer.open(settings: (0..<40).flatMap { _ in [0, 4, 0, 1, 0, 0] as [UInt8] })
            return peer.goAwayCode()
        }
        #expect(code != nil)
    }

    enum Nonsense: CaseIterable, CustomTestStringConvertible {
        case http1, zeros, ones, halfAPreface, hugeFrame, dataOnNoStream
        var testDescription: String { "\(self)" }

        var bytes: [UInt8] {
            let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
            return switch self {
            case .http1: Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8)
            case .zeros: [UInt8](repeating: 0, count: 1000)
            case .ones: [UInt8](repeating: 255, count: 1000)
            case .halfAPreface: preface.dropLast(10) + Array("XXXXXXXXXXXXXXXXXXXX".utf8)
            case .hugeFrame: preface + RawPeer.frame(4) + [255, 255, 255, 0, 0, 0, 0, 0, 1]
            case .dataOnNoStream: preface + RawPeer.frame(4) + RawPeer.frame(Kind.data, stream: 5, payload: [1])
            }
        }
    }

    @Test(arguments: Nonsense.allCases, [true, false])
    func nonHTTP2ConnectionIsClosed(nonsense: Nonsense, tls: Bool) async throws {
        try await TestServer.with(tls: tls) { _ in
            .now(Self.ok)
        } _: { server in
            let port = server.port
            let ended = await blocking {
                let peer = RawPeer(port: port)
                peer.send(nonsense.bytes)
                return peer.isEnded()
            }
            #expect(ended)
            let client = try await server.client(tls: tls)
            #expect(try await client.send("GET", "/").get().status == 200)
        }
    }

    // MARK: Time

    private func limits(_ change: (inout ServerLimits) -> Void) -> ServerLimits {
        var limits = ServerLimits.patient
        change(&limits)
        return limits
    }

    @Test func stalledHandshakeIsClosed() async throws {
        let limits = limits { $0.handshake = .milliseconds(100) }
        try await TestServer.with(limits: limits) { _ in
            .now(Self.ok)
        } _: { server in
            let port = server.port
            let ended = await blocking {
                let peer = RawPeer(port: port)
                peer.send([0x16, 3, 1])
                return peer.isEnded()
            }
            #expect(ended)
        }
    }

    @Test func unacknowledgedSettingsEndTheConnection() async throws {
        let limits = limits { $0.settingsAcknowledgement = .milliseconds(100) }
        let code = try await attacked(limits: limits, andServesOthers: false) { peer -> UInt32? in
            peer.open()
            return peer.goAwayCode()
        }
        #expect(code == 4)
    }

    @Test(arguments: [0, 1, 2]) func incompleteRequestEndsTheConnection(part: Int) async throws {
        let limits = limits {
            $0.request = .milliseconds(100)
            $0.idle = .milliseconds(200)
        }
        let code = try await attacked(limits: limits, andServesOthers: false) { peer -> UInt32? in
            peer.open()
            peer.acknowledgeSettings()
            switch part {
            case 0: peer.request(1, post: true, end: false)
            case 1: peer.send(Kind.headers, stream: 1, payload: RawPeer.requestHead())
            default: peer.send([0, 0, 9, 1])
            }
            return peer.goAwayCode()
        }
        #expect(code == Self.calm || code == 0, "\(code as UInt32?)")
    }

    @Test func idleConnectionEndsWithGoAway() async throws {
        let limits = limits { $0.idle = .milliseconds(100) }
        let code = try await attacked(limits: limits, andServesOthers: false) { peer -> UInt32? in
            peer.open()
            peer.acknowledgeSettings()
            peer.request(1)
            return peer.goAwayCode()
        }
        #expect(code == 0)
    }

    @Test(arguments: [true, false]) func nonReadingClientIsDisconnected(windowIsShut: Bool) async throws {
        let limits = limits { $0.write = .milliseconds(200) }
        let ended = try await attacked(
            limits: limits, body: [UInt8](repeating: 1, count: 4_000_000), receiveBuffer: 2048, andServesOthers: false
        ) { peer -> Bool in
            // The stream window is zero, or it is large and the client does not read its socket.
            peer.open(settings: windowIsShut ? [0, 4, 0, 0, 0, 0] : [0, 4, 0x7f, 0xff, 0xff, 0xff])
            peer.acknowledgeSettings()
            if !windowIsShut { peer.send(Kind.windowUpdate, payload: [0x70, 0, 0, 0]) }
            peer.request(1)
            var probe = pollfd(fd: peer.fd, events: Int16(POLLIN), revents: 0)
            if windowIsShut { return peer.isEnded() }
            // Reading would let the rest through, so the reset is detected without a read.
            probe.events = 0
            return poll(&probe, 1, Int32(Patience.seconds * 1000)) == 1
        }
        #expect(ended)
    }

    @Test func slowReaderGetsTheWholeAnswer() async throws {
        let large = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 13) }
        let received = try await attacked(body: large, receiveBuffer: 4096) { peer -> [UInt8] in
            peer.open()
            peer.acknowledgeSettings()
            peer.request(1)
            var body: [UInt8] = []
            while let frame = peer.next() {
                guard frame.type == Kind.data else { continue }
                body += frame.payload
                if frame.flags & RawPeer.endStream != 0 { break }
                // The window grows by exactly the received bytes, so that the server stops again
                // and again.
                let more = withUnsafeBytes(of: UInt32(frame.payload.count).bigEndian) { Array($0) }
                peer.send(Kind.windowUpdate, payload: more)
                peer.send(Kind.windowUpdate, stream: 1, payload: more)
            }
            return body
        }
        #expect(received == large)
    }
}
