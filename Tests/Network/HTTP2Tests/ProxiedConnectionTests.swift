import CLinux
import EventLoop
import Glibc
import HTTP
import Log
import TestSupport
import Testing

@testable import HTTP2

private typealias Kind = RawPeer.Kind

/// Connections through a proxy. They use plain TCP, because the proxy header precedes TLS. Each
/// answer contains the client address of its request.
struct ProxiedConnectionTests {
    private static let caller: [UInt8] = [192, 0, 2, 7]

    private func proxies(_ ranges: String...) throws -> Proxies {
        Proxies(try ranges.map { try #require(AddressRange($0)) })
    }

    private func served<Value: Sendable>(
        _ proxies: Proxies, limits: ServerLimits = .patient, host: String = "127.0.0.1",
        _ body: @escaping @Sendable (RawPeer) -> Value
    ) async throws -> (value: Value, log: [String]) {
        try await TestServer.with(limits: limits, proxies: proxies, host: host, tls: false) { request in
            .now(Response(status: 200, body: Array(request.remote.utf8)))
        } _: { server in
            let port = server.port
            return (await blocking { body(RawPeer(port: port)) }, server.log.lines)
        }
    }

    private static func whoAmI(_ peer: RawPeer) -> String? {
        peer.open()
        peer.request(1)
        return peer.next(Kind.data).map { String(decoding: $0.payload, as: UTF8.self) }
    }

    @Test func addressFromTheProxyHeaderIsUsed() async throws {
        for header in [
            ProxyHeaderBytes.four(Self.caller, port: 9),
            ProxyHeaderBytes.header(0x21, 0x11, Self.caller + Array(repeating: 7, count: 4092)),
        ] {
            let proxies = try proxies("10.0.0.0/8", "127.0.0.1")
            let (who, _) = try await served(proxies) { peer in
                peer.send(header)
                return Self.whoAmI(peer)
            }
            #expect(who == "192.0.2.7")
            #expect(proxies.refused == 0)
        }
    }

    @Test func fragmentedProxyHeaderIsRead() async throws {
        let header = ProxyHeaderBytes.four(Self.caller, port: 9)
        let (slow, _) = try await served(try proxies("127.0.0.0/8")) { peer in
            for byte in header { peer.send([byte]) }
            return Self.whoAmI(peer)
        }
        #expect(slow == "192.0.2.7")
        let (together, _) = try await served(try proxies("127.0.0.0/8")) { peer in
            let begin = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + RawPeer.frame(Kind.settings)
            let ask = RawPeer.frame(
                Kind.headers, flags: RawPeer.endHeaders | RawPeer.endStream, stream: 1, payload: RawPeer.requestHead())
            peer.send(header + begin + ask)
            return peer.next(Kind.data).map { String(decoding: $0.payload, as: UTF8.self) }
        }
        #expect(together == "192.0.2.7")
    }

    @Test func localProxyHeaderKeepsTheProxysAddress() async throws {
        let (who, _) = try await served(try proxies("127.0.0.1")) { peer in
            peer.send(ProxyHeaderBytes.local)
            return Self.whoAmI(peer)
        }
        #expect(who == "127.0.0.1")
    }

    /// A dual-stack server sees IPv4 clients as IPv4-mapped IPv6 addresses.
    @Test(.enabled(if: ProxiedConnectionTests.hasIPv6)) func dualStackListenerRecognisesTheProxy() async throws {
        let (who, _) = try await served(try proxies("127.0.0.1"), host: "::") { peer in
            peer.send(ProxyHeaderBytes.four(Self.caller, port: 9))
            return Self.whoAmI(peer)
        }
        #expect(who == "192.0.2.7")
        let (plain, _) = try await served(Proxies(), host: "::") { peer in Self.whoAmI(peer) }
        #expect(plain == "127.0.0.1")
    }

    static let hasIPv6: Bool = {
        let fd = socket(AF_INET6, Int32(SOCK_STREAM.rawValue), 0)
        if fd >= 0 { close(fd) }
        return fd >= 0
    }()

    @Test func proxyHeaderFromAnUntrustedPeerIsRefused() async throws {
        let proxies = try proxies("127.0.0.2", "10.0.0.0/8", "::1")
        let (isEnded, _) = try await served(proxies) { peer in
            peer.send(ProxyHeaderBytes.four(Self.caller, port: 9))
            peer.open()
            peer.request(1)
            return peer.next(Kind.data) == nil
        }
        #expect(isEnded)
        let (who, _) = try await served(proxies) { peer in Self.whoAmI(peer) }
        #expect(who == "127.0.0.1")
        #expect(proxies.refused == 0)
    }

    @Test func connectionWithoutProxyHeaderIsRefused() async throws {
        let four = ProxyHeaderBytes.four(Self.caller, port: 9)
        for (bytes, fault) in [
            (Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8), ProxyHeader.Fault.signature),
            ([0x16, 3, 1, 2, 0], .signature),
            (Array("PROXY TCP4 192.0.2.7 198.51.100.1 9 443\r\n".utf8), .signature),
            (ProxyHeaderBytes.header(0x22, 0x11, Self.caller), .command),
            (ProxyHeaderBytes.header(0x21, 0x31, Array(repeating: 0, count: 216)), .family),
            (ProxyHeaderBytes.header(0x21, 0x11, Self.caller), .short),
            (ProxyHeaderBytes.prefix(0x21, 0x11, length: 4097), .long),
            (Array(four.dropLast()), .cut),
        ] {
            let proxies = try proxies("127.0.0.1")
            let (isEnded, log) = try await served(proxies) { peer in
                peer.send(bytes)
                if fault == .cut { shutdown(peer.fd, Int32(SHUT_WR)) }
                return peer.isEnded()
            }
            #expect(isEnded && proxies.refused == 1, "\(fault)")
            let said = log.filter { $0.contains("event=connection.refused") }
            #expect(said.count == 1 && said[0].contains("remote=127.0.0.1") && said[0].contains(fault.rawValue))
        }
    }

    /// A health check of a load balancer opens a connection and closes it without a byte.
    @Test func silentProxyConnectionIsNotLogged() async throws {
        let proxies = try proxies("127.0.0.1")
        let (isEnded, log) = try await served(proxies) { peer in
            shutdown(peer.fd, Int32(SHUT_WR))
            return peer.isEnded()
        }
        #expect(isEnded && proxies.refused == 0 && !log.contains { $0.contains("connection.refused") })
    }

    @Test(arguments: [0, 5, 20]) func proxyHeaderTimesOutLikeAHandshake(count: Int) async throws {
        let proxies = try proxies("127.0.0.1")
        var limits = ServerLimits.patient
        limits.handshake = .milliseconds(20)
        let (isEnded, log) = try await served(proxies, limits: limits) { peer in
            peer.send(Array(ProxyHeaderBytes.four(Self.caller, port: 9)[..<count]))
            return peer.isEnded()
        }
        #expect(isEnded && proxies.refused == 1)
        #expect(log.contains { $0.contains(ProxyHeader.Fault.late.rawValue) })
    }

    /// All refusals are counted, but only one is logged.
    @Test func burstOfRefusalsIsLoggedOnce() async throws {
        let proxies = try proxies("127.0.0.1")
        try await TestServer.with(proxies: proxies, tls: false) { _ in
            .now(Response(status: 200))
        } _: { server in
            let port = server.port
            await blocking {
                for _ in 0..<20 {
                    let peer = RawPeer(port: port)
                    peer.send([0x16])
                    _ = peer.isEnded()
                }
            }
            #expect(proxies.refused == 20)
            let said = server.log.lines.filter { $0.contains("event=connection.refused") }
            // A machine that needs more than ten seconds can log more lines.
            #expect((1...3).contains(said.count))
        }
    }
}

/// Reads of a proxy header, which must not consume the bytes after it.
struct IntroductionTests {
    @Test func readerConsumesNoByteAfterTheProxyHeader() throws {
        let header = ProxyHeaderBytes.header(0x21, 0x11, [192, 0, 2, 7] + Array(repeating: 3, count: 40))
        for step in [1, 2, 7, 15, 16, 17, header.count, header.count + 4] {
            var pair: [Int32] = [0, 0]
            try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0, &pair) == 0)
            defer { for fd in pair { close(fd) } }
            var introduction = ProxyHeaderReader()
            var rest = (header + [0x16, 3, 1, 2])[...]
            var source: String?
            while source == nil, !rest.isEmpty {
                let piece = Array(rest.prefix(step))
                rest = rest.dropFirst(step)
                #expect(send(pair[0], piece, piece.count, 0) == piece.count)
                switch introduction.read(from: pair[1]) {
                case .incomplete: continue
                case .whole(.relayed(let from)): source = from.host
                default: Issue.record("refused in steps of \(step)")
                }
            }
            #expect(source == "192.0.2.7", "in steps of \(step)")
            #expect(send(pair[0], Array(rest), rest.count, 0) == rest.count)
            var behind = [UInt8](repeating: 0, count: 16)
            let count = recv(pair[1], &behind, behind.count, 0)
            #expect(count == 4 && behind.starts(with: [0x16, 3, 1, 2]), "in steps of \(step)")
        }
    }
}

/// Events that repeat are logged once in ten seconds.
struct BurstTests {
    @Test func suppressedEventsAreCountedInTheNextLine() {
        var burst = LogThrottle()
        let time = TestTime()
        var said: [Int?] = []
        for pause in [0, 9, 0, 1, 0] {
            time.advance(by: .seconds(pause))
            said.append(burst.record(at: time.instant()))
        }
        #expect(said == [1, nil, nil, 3, nil])
        time.advance(by: .seconds(10))
        #expect(burst.record(5, at: time.instant()) == 6)
    }
}
