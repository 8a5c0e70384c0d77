import Bytes
import COpenSSL
import Crypto
import EventLoop
import Synchronization
import TestSupport
import Testing
import World

@testable import TLS

/// A client that keeps the session of its last connection.
final class ReturningClient {
    let context: TLSClientContext
    private(set) var state: OpaquePointer?

    init(_ context: TLSClientContext) { self.context = context }

    deinit { SSL_SESSION_free(state) }

    /// Connects with the kept session, and keeps the new one. Both sides must succeed.
    /// - Parameter prepare: called with the client's session before the handshake.
    @discardableResult
    func connect(
        to server: TLSServerContext, prepare: (OpaquePointer) -> Void = { _ in }
    ) throws -> TLSPair {
        let (pair, failures) = try attempt(server, prepare)
        #expect(failures.server == nil && failures.client == nil)
        SSL_SESSION_free(state)
        // A copy, because OpenSSL marks the session of a connection that ends without an alert.
        state = SSL_SESSION_dup(SSL_get_session(pair.client.session))
        return pair
    }

    /// Connects with the kept session, and keeps no other.
    func attempt(
        _ server: TLSServerContext, _ prepare: (OpaquePointer) -> Void = { _ in }
    ) throws -> (pair: TLSPair, failures: (server: TLSFailure?, client: TLSFailure?)) {
        let pair = try TLSPair(server, context)
        if let state { try #require(SSL_set_session(pair.client.session, state) == 1) }
        prepare(pair.client.session)
        return (pair, pair.shake())
    }
}

/// Resumption with real clients of OpenSSL. The clock of the sessions is the test's; OpenSSL judges
/// certificates by the clock of the system, which does not matter here.
struct ResumptionTests {
    private let authorities: TestCertificates
    private let time: TestTime
    private let sessions: ResumableSessions

    init() throws {
        authorities = try TestCertificates()
        time = TestTime(start: authorities.now)
        sessions = ResumableSessions(time: time, randomness: SystemRandomness())
    }

    private func server(crl: [UInt8]? = nil) throws -> TLSServerContext {
        try authorities.serverContext(crl: crl, sessions: sessions)
    }

    /// A context with a memory of its own, as another relay, listener, start or reload has it.
    private func otherServer(crl: [UInt8]? = nil) throws -> TLSServerContext {
        try authorities.serverContext(
            crl: crl, sessions: ResumableSessions(time: time, randomness: SystemRandomness()))
    }

    /// A client whose certificate is valid for two days.
    private func lastingClient() throws -> ReturningClient {
        ReturningClient(try authorities.clientContext(authorities.client(to: .seconds(2 * 86_400))))
    }

    // MARK: Resumed

    enum Caller: CaseIterable, CustomTestStringConvertible {
        case website, phone
        var testDescription: String { "\(self)" }
    }

    @Test(arguments: Caller.allCases) func resumedSessionHasTheCallerOfTheFullHandshake(caller: Caller) throws {
        let certificate =
            switch caller {
            case .website: try authorities.client()
            case .phone:
                try authorities.client(of: authorities.phones, names: [.uri("twoefay:device:1"), .uri("urn:2")])
            }
        let server = try server()
        let client = ReturningClient(try authorities.clientContext(certificate))
        let full = try client.connect(to: server)
        #expect(!full.server.isResumed && !full.client.isResumed)
        let peer = full.server.peer
        #expect(peer?.keyThumbprint == certificate.certificate.spkiThumbprint)
        // The second time with the ticket of the resumed session.
        for _ in 0..<2 {
            let resumed = try client.connect(to: server)
            #expect(resumed.server.isResumed && resumed.client.isResumed)
            #expect(resumed.server.peer == peer)
            guard case .bytes(3) = resumed.write(resumed.client, [1, 2, 3]) else {
                Issue.record("not written")
                return
            }
            guard case .bytes(3) = resumed.read(resumed.server) else {
                Issue.record("not read")
                return
            }
        }
    }

    /// The client shows a certificate only in a full handshake.
    @Test func resumedSessionKeepsTheFormerCertificate() throws {
        let server = try server()
        let shop = try authorities.client()
        let bank = try PEM.certificates(authorities.client(names: [.uri("twoefay:website:bank")]).certificatePEM())
        let client = ReturningClient(try authorities.clientContext(shop))
        try client.connect(to: server)
        let pair = try client.connect(to: server) { session in
            #expect(SSL_use_certificate(session, bank[0].pointer) == 1)
        }
        #expect(pair.server.isResumed)
        #expect(pair.server.peer?.uris == ["twoefay:website:shop"])
    }

    /// Without a key exchange, the secret of a session would open recorded connections.
    @Test func resumptionAlwaysExchangesKeys() throws {
        let server = try server()
        let client = try lastingClient()
        // The client offers both ways, and the server takes the one with a key exchange.
        let offer = { (session: OpaquePointer) in _ = SSL_set_options(session, copenssl_tls_op_allow_no_dhe_kex) }
        try client.connect(to: server, prepare: offer)
        let pair = try client.connect(to: server, prepare: offer)
        #expect(pair.server.isResumed)
        var key: OpaquePointer?
        #expect(SSL_ctrl(pair.client.session, SSL_CTRL_GET_PEER_TMP_KEY, 0, &key) == 1)
        EVP_PKEY_free(key)
    }

    // MARK: Not resumed

    @Test func earlyDataIsNotAccepted() throws {
        let server = try server()
        let client = try lastingClient()
        try client.connect(to: server)
        #expect(SSL_SESSION_get_max_early_data(client.state) == 0)
        SSL_SESSION_set_max_early_data(client.state, 1000)
        let pair = try client.connect(to: server) { session in
            var written = 0
            #expect(SSL_write_early_data(session, [1, 2, 3], 3, &written) == 1)
            #expect(written == 3)
        }
        #expect(pair.server.isResumed)
        #expect(SSL_get_early_data_status(pair.client.session) == SSL_EARLY_DATA_REJECTED)
        guard case .incomplete = pair.read(pair.server) else {
            Issue.record("early data was read")
            return
        }
    }

    @Test func ticketsAreForTLS13Only() throws {
        let server = try server()
        let client = ReturningClient(try authorities.clientContext(authorities.client()))
        for _ in 0..<2 {
            let pair = try client.connect(to: server) { session in
                SSL_clear_options(session, copenssl_tls_op_no_ticket)
                SSL_ctrl(session, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
            }
            #expect(pair.client.version == "TLSv1.2" && !pair.server.isResumed)
            #expect(pair.server.peer != nil)
            // It has a session id, by which the relay finds nothing.
            #expect(SSL_SESSION_has_ticket(client.state) == 0)
        }
        #expect(sessions.count == 0)
    }

    @Test func strangersHaveNoTickets() throws {
        let (server, plain) = (try server(), try authorities.serverContext())
        let stranger = ReturningClient(try authorities.clientContext())
        for _ in 0..<2 {
            #expect(try !stranger.connect(to: server).server.isResumed)
            #expect(SSL_SESSION_has_ticket(stranger.state) == 0)
        }
        #expect(sessions.count == 0)
        // Without a memory of sessions, nobody has one.
        let client = try lastingClient()
        for _ in 0..<2 {
            #expect(try !client.connect(to: plain).server.isResumed)
            #expect(SSL_SESSION_has_ticket(client.state) == 0)
        }
    }

    @Test func ticketOfAnotherContextIsIgnored() throws {
        let client = try lastingClient()
        try client.connect(to: server())
        let other = try otherServer()
        let pair = try client.connect(to: other)
        #expect(!pair.server.isResumed && pair.server.peer != nil)
        // The full handshake has given it another ticket.
        #expect(try client.connect(to: other).server.isResumed)
    }

    @Test func endedContextKnowsNoTicket() throws {
        let server = try server()
        let client = try lastingClient()
        try client.connect(to: server)
        server.endSessions()
        #expect(try !client.connect(to: server).server.isResumed)
        #expect(sessions.count == 0)
        #expect(try !client.connect(to: server).server.isResumed)
    }

    /// A ClientHello has room for more than a thousand tickets.
    @Test func fewTicketsAreLookedUpInAHandshake() throws {
        let pair = try TLSPair(server(), lastingClient().context)
        #expect((0..<1000).count { _ in pair.server.takeLookup() } == 4)
    }

    @Test func changedTicketIsIgnored() throws {
        let server = try server()
        for position in [0, 2, 31] {
            let client = try lastingClient()
            try client.connect(to: server)
            var ticket: UnsafePointer<UInt8>?
            var count = 0
            SSL_SESSION_get0_ticket(client.state, &ticket, &count)
            #expect(count == 32)
            UnsafeMutablePointer(mutating: try #require(ticket))[position] ^= 1
            let pair = try client.connect(to: server)
            #expect(!pair.server.isResumed && pair.server.peer != nil)
        }
    }

    /// Somebody who has seen a ticket, but not the secret of its session, gains nothing.
    @Test func ticketWithoutItsSecretIsRefused() throws {
        let server = try server()
        let client = try lastingClient()
        try client.connect(to: server)
        let wrong = [UInt8](repeating: 7, count: SSL_SESSION_get_master_key(client.state, nil, 0))
        try #require(SSL_SESSION_set1_master_key(client.state, wrong, wrong.count) == 1)
        let (pair, failures) = try client.attempt(server)
        #expect(failures.server != nil && failures.client != nil)
        #expect(pair.server.peer == nil)
    }

    @Test func reloadedListIsApplied() throws {
        let revoked = try authorities.client()
        let client = ReturningClient(try authorities.clientContext(revoked))
        try client.connect(to: server())
        let empty = try authorities.websites.makeCRL(revoked: [], days: 10, at: authorities.now)
        let (accepted, _) = try client.attempt(otherServer(crl: empty))
        #expect(!accepted.server.isResumed && accepted.server.peer != nil)
        let list = try authorities.websites.makeCRL(
            revoked: [(revoked.certificate.serial, authorities.now)], days: 10, at: authorities.now)
        let (refused, failures) = try client.attempt(otherServer(crl: list))
        #expect(refused.server.peer == nil)
        #expect(failures.server?.certificate?.reason == .revoked)
    }

    // MARK: Dates

    @Test func ticketEndsTwelveHoursAfterTheFullHandshake() throws {
        let server = try server()
        let client = try lastingClient()
        try client.connect(to: server)
        #expect(SSL_SESSION_get_ticket_lifetime_hint(client.state) == 12 * 3600)
        time.advance(by: .seconds(6 * 3600))
        #expect(try client.connect(to: server).server.isResumed)
        // The ticket of the resumed session has the same end.
        #expect(SSL_SESSION_get_ticket_lifetime_hint(client.state) == 6 * 3600)
        time.advance(by: .seconds(6 * 3600 - 1))
        #expect(try client.attempt(server).pair.server.isResumed)
        time.advance(by: .seconds(1))
        let pair = try client.connect(to: server)
        #expect(!pair.server.isResumed && pair.server.peer != nil)
    }

    @Test func ticketEndsWithTheCertificate() throws {
        let server = try server()
        let client = ReturningClient(try authorities.clientContext(authorities.client(to: .seconds(600))))
        try client.connect(to: server)
        time.advance(by: .seconds(598))
        #expect(try client.attempt(server).pair.server.isResumed)
        time.advance(by: .seconds(2))
        #expect(try !client.attempt(server).pair.server.isResumed)
    }

    /// If the clock is set back, the certificate is not valid yet.
    @Test func ticketBeginsWithTheCertificate() throws {
        let server = try server()
        let client = try lastingClient()
        try client.connect(to: server)
        time.advance(by: .seconds(-62))
        #expect(try !client.attempt(server).pair.server.isResumed)
        time.advance(by: .seconds(62))
        #expect(try client.attempt(server).pair.server.isResumed)
    }

    @Test func ticketEndsWithTheRevocationList() throws {
        let list = try authorities.websites.makeCRL(
            revoked: [], days: 1, at: authorities.now - .seconds(23 * 3600))
        let server = try server(crl: list)
        let client = try lastingClient()
        let phone = ReturningClient(
            try authorities.clientContext(authorities.client(of: authorities.phones, to: .seconds(86_400))))
        try client.connect(to: server)
        try phone.connect(to: server)
        time.advance(by: .seconds(3598))
        #expect(try client.attempt(server).pair.server.isResumed)
        time.advance(by: .seconds(2))
        #expect(try !client.attempt(server).pair.server.isResumed)
        // The list is not for phones.
        #expect(try phone.attempt(server).pair.server.isResumed)
    }

    @Test func ticketEndsWithTheAuthority() throws {
        let old = try CertificateAuthority.create(
            commonName: "old", days: 1, at: authorities.now - .seconds(23 * 3600))
        let server = try TLSServerContext(
            certificateChainPEM: authorities.server.certificatePEM(), privateKeyPEM: authorities.server.keyPEM(),
            websitesCA: old.certificatePEM(), phonesCA: authorities.phones.certificatePEM(), sessions: sessions)
        let client = ReturningClient(
            try authorities.clientContext(authorities.client(of: old, to: .seconds(86_400))))
        try client.connect(to: server)
        time.advance(by: .seconds(3598))
        #expect(try client.attempt(server).pair.server.isResumed)
        time.advance(by: .seconds(2))
        #expect(try !client.attempt(server).pair.server.isResumed)
    }

    /// The wall clock may be set back, and would lengthen every session.
    @Test func sessionEndsByTheMonotonicClock() throws {
        let clock = SteppedTime(time)
        let server = try authorities.serverContext(
            sessions: ResumableSessions(time: clock, randomness: SystemRandomness()))
        let client = try lastingClient()
        try client.connect(to: server)
        time.advance(by: .seconds(12 * 3600 - 1))
        clock.step(by: .seconds(-3600))
        #expect(try client.connect(to: server).server.isResumed)
        time.advance(by: .seconds(1))
        #expect(try !client.attempt(server).pair.server.isResumed)
    }

    // MARK: Memory

    /// The network sees tickets, and must not recognise the client by them.
    @Test func ticketsOfOneClientHaveNothingInCommon() throws {
        let server = try server()
        let client = try lastingClient()
        var tickets: [[UInt8]] = []
        for _ in 0..<8 {
            try client.connect(to: server)
            var (start, count): (UnsafePointer<UInt8>?, Int) = (nil, 0)
            SSL_SESSION_get0_ticket(client.state, &start, &count)
            tickets.append(Array(UnsafeBufferPointer(start: start, count: count)))
        }
        // All eight agree in a byte by a chance of 2^-56.
        for at in 0..<32 { #expect(Set(tickets.map { $0[at] }).count > 1, "\(at)") }
    }

    @Test func clientHasEightPlacesOfItsOwn() throws {
        let server = try server()
        let certificate = try authorities.client()
        let others = try (0..<4).map { _ in try lastingClient() }
        for other in others { try other.connect(to: server) }
        let first = ReturningClient(try authorities.clientContext(certificate))
        try first.connect(to: server)
        for number in 2...10 {
            #expect(try first.attempt(server).pair.server.isResumed == (number <= 9), "\(number)")
        }
        #expect(sessions.count <= 8 + others.count)
        // The chance that all of them share the set of the first is 4,096 to the fourth.
        let kept = try others.count { try $0.attempt(server).pair.server.isResumed }
        #expect(kept > 0)
    }
}

/// A clock whose wall time was set.
private final class SteppedTime: TimeSource {
    private let base: TestTime
    private let step = Mutex(Duration.zero)

    init(_ base: TestTime) { self.base = base }

    func now() -> Timestamp { base.now() + step.withLock { $0 } }
    func instant() -> Instant { base.instant() }
    func step(by duration: Duration) { step.withLock { $0 += duration } }
}
