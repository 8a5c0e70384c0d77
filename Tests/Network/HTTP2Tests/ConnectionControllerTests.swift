import EventLoop
import Glibc
import HTTP
import TestSupport
import Testing

@testable import HTTP2

/// A controller that follows the test's closures and records all calls.
private final class TestController: ServerController {
    struct Events: Sendable {
        var handled: [Int32] = []
        var closed: [Int32] = []
        var ended = 0
    }

    typealias Opened = @Sendable (ServerConnection) -> Void
    typealias Handled = @Sendable (Int32, ServerConnection) -> Reply?

    private let admission: @Sendable (Int) -> Admission
    private let whenOpened: Opened
    private let whenHandled: Handled
    private let events: Shared<Events>

    init(
        _ events: Shared<Events> = Shared(Events()),
        admission: @escaping @Sendable (Int) -> Admission = { _ in .serve },
        opened: @escaping Opened = { _ in }, handled: @escaping Handled
    ) {
        self.events = events
        self.admission = admission
        whenOpened = opened
        whenHandled = handled
    }

    func admit(_ number: Int) -> Admission { admission(number) }

    func opened(_ connection: ServerConnection) -> any ConnectionController {
        whenOpened(connection)
        return Kept(connection, whenHandled, events)
    }

    private final class Kept: ConnectionController {
        private let connection: ServerConnection
        private let whenHandled: Handled
        private let events: Shared<Events>

        init(_ connection: ServerConnection, _ handled: @escaping Handled, _ events: Shared<Events>) {
            self.connection = connection
            self.events = events
            whenHandled = handled
        }

        func handle(_ request: Request, stream: Int32) -> Reply? {
            events.withLock { $0.handled.append(stream) }
            return whenHandled(stream, connection)
        }

        func closed(stream: Int32) { events.withLock { $0.closed.append(stream) } }
        func ended() { events.withLock { $0.ended += 1 } }
    }
}

private let ok = Reply.now(Response(status: 200))

/// Control over the connections of a server, observed by a peer that sends raw frames.
struct ConnectionControllerTests {
    private func with<Value: Sendable>(
        _ keeper: @escaping @Sendable () -> TestController, _ body: @escaping @Sendable (TestServer) throws -> Value
    ) async throws -> Value {
        try await TestServer.with(tls: false, keeper: keeper) { _ in
            // The controller answers, so the handler must not be called.
            .now(Response(status: 500))
        } _: { server in
            try await blocking { Result { try body(server) } }.get()
        }
    }

    /// The value of a setting, or nil if the frame has no such setting.
    private static func setting(_ id: UInt8, in frame: RawPeer.Frame?) -> UInt32? {
        guard let payload = frame?.payload else { return nil }
        for at in stride(from: 0, to: payload.count, by: 6) where payload[at] == 0 && payload[at + 1] == id {
            return payload[(at + 2)..<(at + 6)].reduce(0) { $0 << 8 | UInt32($1) }
        }
        return nil
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 { bytes.reduce(0) { $0 << 8 | UInt32($1) } }

    private static let streams: UInt8 = 3
    private static let isSettings: @Sendable (RawPeer.Frame) -> Bool = {
        $0.type == RawPeer.Kind.settings && $0.flags == 0
    }

    @Test func goAwayIsSentBeforeSettings() async throws {
        let events = Shared(TestController.Events())
        try await with {
            TestController(events, opened: { $0.goAway(lastStream: 0) }) { _, _ in ok }
        } _: { server in
            let peer = RawPeer(port: server.port)
            peer.open()
            peer.request(1)
            let first = try #require(peer.next())
            #expect(first.type == RawPeer.Kind.goAway)
            #expect(Self.number(first.payload[0..<4]) == 0)
            #expect(peer.next()?.type == RawPeer.Kind.settings)
            #expect(peer.isEnded())
        }
        await events.until { $0.ended == 1 }
        #expect(events.current.handled == [])
    }

    @Test func streamsAboveGoAwayAreIgnored() async throws {
        let events = Shared(TestController.Events())
        try await with {
            TestController(events) { stream, connection in
                // Stream 1 waits. Stream 3 is the first above GOAWAY. Stream 5 arrives in the same
                // read.
                guard stream == 3 else { return nil }
                connection.goAway(lastStream: 1)
                connection.answer(1, Response(status: 200))
                return nil
            }
        } _: { server in
            let peer = RawPeer(port: server.port)
            peer.open()
            let flags = RawPeer.endHeaders | RawPeer.endStream
            peer.send(
                [1, 3, 5].flatMap {
                    RawPeer.frame(RawPeer.Kind.headers, flags: flags, stream: $0, payload: RawPeer.requestHead())
                })
            let goAway = try #require(peer.next(RawPeer.Kind.goAway))
            #expect(Self.number(goAway.payload[0..<4]) == 1)
            #expect(peer.next(RawPeer.Kind.headers)?.stream == 1)
            #expect(peer.isEnded())
        }
        await events.until { $0.ended == 1 }
        #expect(events.current.handled == [1, 3])
        #expect(Set(events.current.closed) == [1, 3, 5])
    }

    @Test func streamLimitIsAnnouncedOnlyWhenChanged() async throws {
        try await with {
            TestController(opened: { $0.streamLimit = nil }) { stream, connection in
                connection.announce(streams: UInt32(stream) * 10)
                return ok
            }
        } _: { server in
            let peer = RawPeer(port: server.port)
            peer.open()
            #expect(Self.setting(Self.streams, in: peer.next(Self.isSettings)) == nil)
            for stream: UInt32 in [1, 3] {
                peer.request(stream)
                #expect(Self.setting(Self.streams, in: peer.next(Self.isSettings)) == stream * 10)
            }
        }
    }

    @Test func requestBeyondALoweredLimitIsRefused() async throws {
        let events = Shared(TestController.Events())
        try await with {
            TestController(events) { _, connection in
                connection.announce(streams: 1)
                return nil
            }
        } _: { server in
            let peer = RawPeer(port: server.port)
            peer.open()
            peer.request(1)
            _ = peer.next { Self.isSettings($0) && Self.setting(Self.streams, in: $0) == 1 }
            // The peer has not acknowledged the limit, so it may not know it.
            peer.request(3)
            let refused = try #require(peer.next(RawPeer.Kind.reset))
            #expect(refused.stream == 3)
            #expect(Self.number(refused.payload[...]) == ErrorCode.refusedStream.rawValue)
        }
        #expect(events.current.handled == [1])
    }

    @Test func resetAffectsOnlyItsStream() async throws {
        try await with {
            TestController { stream, connection in
                guard stream == 1 else { return ok }
                connection.reset(1, .internalError)
                return nil
            }
        } _: { server in
            let peer = RawPeer(port: server.port)
            peer.open()
            peer.request(1)
            let reset = try #require(peer.next(RawPeer.Kind.reset))
            #expect(reset.stream == 1)
            #expect(Self.number(reset.payload[...]) == ErrorCode.internalError.rawValue)
            peer.request(3)
            #expect(peer.next(RawPeer.Kind.headers)?.stream == 3)
        }
    }

    /// Awaits a later answer on another connection of the same loop. Afterwards, silence on the
    /// first connection is proven.
    private static func pings(_ server: TestServer) -> Bool {
        let other = RawPeer(port: server.port)
        other.open()
        other.send(RawPeer.Kind.ping, payload: [UInt8](repeating: 7, count: 8))
        return other.next(RawPeer.Kind.ping) != nil
    }

    private static func hasBytes(_ peer: RawPeer) -> Bool {
        var byte: UInt8 = 0
        return recv(peer.fd, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) >= 0
    }

    @Test func frozenConnectionStaysOpenAndSilent() async throws {
        let events = Shared(TestController.Events())
        try await with {
            TestController(events) { stream, connection in
                guard stream == 3 else { return ok }
                connection.freeze()
                return ok
            }
        } _: { server in
            let peer = RawPeer(port: server.port)
            peer.open()
            peer.acknowledgeSettings()
            peer.request(1)
            #expect(peer.next(RawPeer.Kind.headers)?.stream == 1)
            peer.request(3)
            peer.request(5)
            peer.send(RawPeer.Kind.ping, payload: [UInt8](repeating: 1, count: 8))
            #expect(Self.pings(server))
            #expect(!Self.hasBytes(peer))
        }
        #expect(events.current.handled == [1, 3])
    }

    @Test func ignoredConnectionStaysOpen() async throws {
        try await with {
            TestController(admission: { $0 == 1 ? .ignore : .serve }) { _, _ in ok }
        } _: { server in
            let peer = RawPeer(port: server.port)
            peer.open()
            #expect(Self.pings(server))
            #expect(!Self.hasBytes(peer))
        }
    }

    @Test(arguments: [true, false]) func connectionIsResetWithoutGoAway(atTheDoor: Bool) async throws {
        let code = try await with {
            TestController(admission: { _ in atTheDoor ? .cut : .serve }) { _, connection in
                connection.cut()
                return nil
            }
        } _: { server -> Int32 in
            let peer = RawPeer(port: server.port)
            peer.open()
            peer.request(1)
            while peer.next() != nil {}
            return errno
        }
        #expect(code == ECONNRESET || code == EPIPE)
    }
}
