import EventLoop
import Glibc
import HTTP
import Log
import TLS
import TestSupport
import Testing
import World

@testable import HTTP2

/// Admission at a real server over loopback. The clock of the admission, and by default that of the
/// server, moves only when a test moves it.
@Suite(.mayBlock) struct AdmissionServerTests {
    /// Answers each request. A request with the field `phone` comes from an identified phone.
    @Sendable private static func handle(_ request: Request) -> Reply {
        if let phone = request.fields["phone"] { request.identification?.isPhone(Array(phone.utf8)) }
        return .now(Response(status: 200))
    }

    private static func phone(_ number: Int) -> Fields { Fields([Fields.Field("phone", "\(number)")]) }

    private func served(
        _ admission: AdmissionControl, proxies: Proxies = Proxies(), tls: Bool = true,
        time: any TimeSource = TestTime(), _ body: (TestServer) async throws -> Void
    ) async throws {
        try await TestServer.with(
            proxies: proxies, tls: tls, admission: admission, time: time, handler: Self.handle
        ) { server in
            try await body(server)
        }
        for kind in AdmissionControl.Kind.allCases { #expect(admission.open(kind) == 0, "\(kind)") }
    }

    private func control(_ limits: AdmissionLimits, _ time: TestTime = TestTime()) -> AdmissionControl {
        AdmissionControl(limits, time: time, log: Log(minimum: .debug, sink: MemorySink()))
    }

    /// 150 silent connections from one or fifty addresses to a server with room for 160. Websites
    /// and phones are still served.
    @Test(arguments: [1, 50]) func silentFloodLeavesCapacityForOthers(sources: Int) async throws {
        let limits = AdmissionLimits(total: 160)
        let admission = control(limits)
        try await served(admission) { server in
            func flood() -> [RawPeer] {
                (0..<150).map { RawPeer(port: server.port, from: 0x7f00_0001 + UInt32($0 % sources)) }
            }
            var peers = flood()
            for number in 0..<12 {
                let website = try await server.client(server.certificates.client())
                #expect(try await website.send("GET", "/").get().status == 200)
                let phone = try await server.client()
                #expect(try await phone.send("GET", "/", fields: Self.phone(number)).get().status == 200)
                if number == 6 { peers += flood() }
            }
            #expect(admission.open(.website) == 12 && admission.open(.phone) == 12)
            #expect(admission.open(.unidentified) <= limits.unidentified)
            #expect(admission.count(reason: "source") + admission.count(reason: "unidentified") > 200)
            // Open connections are still served.
            let open = await server.loop.perform { server.server.value.connectionCount }
            #expect(open <= limits.total)
            withExtendedLifetime(peers) {}
        }
    }

    /// Connections that complete the handshake and never send a request.
    @Test func oldestIdleConnectionIsReplacedByTheNewest() async throws {
        var limits = AdmissionLimits(total: 160)
        limits.perSource = 5
        let admission = control(limits)
        try await served(admission) { server in
            for _ in 0..<20 { _ = try await server.client() }
            #expect(admission.open(.unidentified) == 5 && admission.count(reason: "source") == 15)
            let phone = try await server.client()
            #expect(try await phone.send("GET", "/").get().status == 200)
            #expect(try await phone.send("GET", "/", fields: Self.phone(1)).get().status == 200)
            for _ in 0..<20 { _ = try await server.client() }
            #expect(try await phone.send("GET", "/").get().status == 200)
        }
    }

    /// A silent connection allocates no TLS session.
    @Test func silentConnectionHasNoTLSSession() async throws {
        let admission = control(AdmissionLimits(total: 400))
        try await served(admission) { server in
            let peers = (0..<40).map { _ in RawPeer(port: server.port) }
            _ = try await server.client(server.certificates.client())
            let (connections, sessions) = await server.loop.perform {
                (server.server.value.connectionCount, server.server.value.sessionCount)
            }
            #expect(connections == 41 && sessions == 1)
            withExtendedLifetime(peers) {}
        }
    }

    @Test func connectionWithoutARequestIsEnded() async throws {
        let time = TestTime()
        let admission = control(AdmissionLimits(total: 160), time)
        try await served(admission) { server in
            let silent = RawPeer(port: server.port)
            let idle = try await server.client()
            let asking = try await server.client()
            let phone = try await server.client()
            let website = try await server.client(server.certificates.client())
            #expect(try await asking.send("GET", "/").get().status == 200)
            #expect(try await phone.send("GET", "/", fields: Self.phone(1)).get().status == 200)
            time.advance(by: .seconds(31))
            admission.sweep()
            #expect(silent.isEnded())
            await idle.isIn(.closed)
            #expect(admission.count(reason: "request") == 2)
            time.advance(by: .seconds(90))
            admission.sweep()
            await asking.isIn(.closed)
            #expect(admission.count(reason: "lifetime") == 1)
            #expect(try await phone.send("GET", "/").get().status == 200)
            #expect(try await website.send("GET", "/").get().status == 200)
        }
    }

    /// The source of a connection is the address in the proxy header.
    @Test func addressBehindTheBalancerCounts() async throws {
        var limits = AdmissionLimits(total: 160)
        limits.perSource = 4
        let admission = control(limits)
        let proxies = Proxies(try [#require(AddressRange("127.0.0.1"))])
        try await served(admission, proxies: proxies, tls: false) { server in
            func peers(_ host: UInt8) -> [RawPeer] {
                (0..<6).map { _ in
                    let peer = RawPeer(port: server.port)
                    peer.send(ProxyHeaderBytes.four([192, 0, 2, host], port: 9))
                    peer.open()
                    _ = peer.next(RawPeer.Kind.settings)
                    peer.acknowledgeSettings()
                    return peer
                }
            }
            let all = peers(1) + peers(2)
            #expect(admission.open(.unidentified) == 8 && admission.open(.introducing) == 0)
            #expect(admission.count(reason: "source") == 4)
            withExtendedLifetime(all) {}
        }
    }
}
