import CLinux
import Crypto
import EventLoop
import Glibc
import Log
import TLS
import TestSupport
import Testing
import World

@testable import HTTP2

@Suite struct HandshakeRecordTests {
    private let time = TestTime()
    private let sink = MemorySink()

    /// Returns the certificate that a server refused, which only a handshake makes.
    private func refused(expired: Bool) throws -> RefusedCertificate {
        let certificates = try TestCertificates()
        let certificate =
            try expired
            ? certificates.client(from: .seconds(-600), to: .seconds(-60))
            : certificates.client(from: .seconds(600), to: .seconds(1200))
        let pair = try ShakingPair(certificates.serverContext(), certificates.clientContext(certificate))
        return try #require(pair.serverFailure?.certificate)
    }

    /// Anybody can cause these lines, so they are counted and not all written.
    @Test func oneLineInTenSecondsForEachReason() throws {
        let record = HandshakeRecord(time: time, log: Log(time: time, sink: sink))
        let (expired, early) = (try refused(expired: true), try refused(expired: false))
        for _ in 0..<3 { record.refuse(expired, from: "192.0.2.1") }
        record.refuse(early, from: "192.0.2.2")
        let lines = sink.drain()
        #expect(lines.count == 2)
        #expect(lines[0].contains("event=handshake.refused remote=192.0.2.1 reason=expired subject=\"/CN=client\""))
        #expect(lines[1].contains("reason=early") && lines[1].contains("count=1"))
        time.advance(by: .seconds(10))
        record.refuse(expired, from: "192.0.2.1")
        #expect(sink.drain().first?.contains("count=3") == true)
        #expect(record.count(reason: "expired") == 4 && record.count(reason: "early") == 1)
        #expect(record.count(reason: "revoked") == 0 && record.count(reason: "unknown") == 0)
    }
}

/// A handshake over a pair of sockets.
private struct ShakingPair: ~Copyable {
    private let ends: [Int32]
    let serverFailure: TLSFailure?

    init(_ server: TLSServerContext, _ client: TLSClientContext) throws {
        var ends: [Int32] = [0, 0]
        let made = socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends)
        precondition(made == 0, "the test has no sockets")
        for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
        self.ends = ends
        let serving = try TLSSession(server: server, fd: ends[0])
        let calling = try TLSSession(client: client, fd: ends[1], host: "localhost")
        var failure: TLSFailure?
        for _ in 0..<20 where failure == nil {
            _ = calling.handshake()
            if case .failed(let found) = serving.handshake() { failure = found }
        }
        serverFailure = failure
    }

    deinit { for end in ends { close(end) } }
}
