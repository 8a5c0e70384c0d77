import Bytes
import Crypto
import EventLoop
import Glibc
import TestSupport
import Testing
import World

@testable import TLS

private let now = SystemTime().now()

/// Both ends of one connection in one thread, which take turns until neither makes progress.
final class TLSPair {
    let server: TLSSession
    let client: TLSSession
    private let ends: [Int32]

    init(_ server: TLSServerContext, _ client: TLSClientContext, host: String = "localhost") throws {
        var ends: [Int32] = [0, 0]
        let made = socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends)
        precondition(made == 0)
        for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
        self.ends = ends
        self.server = try TLSSession(server: server, fd: ends[0])
        self.client = try TLSSession(client: client, fd: ends[1], host: host)
    }

    deinit { for end in ends { close(end) } }

    /// Returns the failures of the server and the client, or nil for success. The client reads once
    /// after the handshake, because TLS 1.3 reports a refused certificate only there.
    func shake() -> (server: TLSFailure?, client: TLSFailure?) {
        var (serverDone, clientDone) = (false, false)
        var (serverFailure, clientFailure): (TLSFailure?, TLSFailure?)
        for _ in 0..<20 {
            if !clientDone, clientFailure == nil {
                switch client.handshake() {
                case .complete: clientDone = true
                case .incomplete: break
                case .failed(let failure): clientFailure = failure
                }
            }
            if !serverDone, serverFailure == nil {
                switch server.handshake() {
                case .complete: serverDone = true
                case .incomplete: break
                case .failed(let failure): serverFailure = failure
                }
            }
        }
        if clientDone, case .failed(let failure) = read(client) { clientFailure = failure }
        return (serverFailure, clientFailure)
    }

    /// Returns the failure of the server, or nil if the handshake succeeded.
    func serverFailure() -> TLSFailure? { shake().server }

    func read(_ session: TLSSession) -> TLSSession.Read {
        withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 1) { session.read(into: $0) }
    }

    func write(_ session: TLSSession, _ bytes: [UInt8]) -> TLSSession.Write {
        bytes.withUnsafeBytes { session.write($0) }
    }
}

struct TLSTests {
    private let authorities: TestCertificates

    init() throws { authorities = try TestCertificates() }

    @Test func clientCertificateIsOptional() throws {
        let pair = try TLSPair(authorities.serverContext(), authorities.clientContext())
        let (server, client) = pair.shake()
        #expect(server == nil && client == nil)
        #expect(pair.server.peer == nil)
        #expect(pair.server.version == "TLSv1.3")
        #expect(pair.client.version == "TLSv1.3")
    }

    /// A read returns before all updates are processed, so a client cannot keep the loop in one
    /// read.
    @Test func keyUpdatesOfAClientAreCounted() throws {
        let pair = try TLSPair(authorities.serverContext(), authorities.clientContext())
        let (server, client) = pair.shake()
        #expect(server == nil && client == nil)
        for _ in 0..<5 { #expect(pair.client.updateKeys()) }
        guard case .bytes(3) = pair.write(pair.client, [1, 2, 3]) else {
            Issue.record("not written")
            return
        }
        var reads = 0
        while reads < 10 {
            reads += 1
            if case .bytes(3) = pair.read(pair.server) { break }
        }
        #expect(reads < 10)
        #expect(pair.server.keyUpdates == 5)
        #expect(pair.client.keyUpdates == 0)
    }

    @Test func rootCertificateIdentifiesTheAuthority() throws {
        let website = try authorities.client()
        let phone = try authorities.client(
            of: authorities.phones, names: [.uri("twoefay:device:1"), .dns("other"), .uri("twoefay:device:2")])
        for (certificate, authority) in [(website, PeerAuthority.websites), (phone, .phones)] {
            let pair = try TLSPair(authorities.serverContext(), authorities.clientContext(certificate))
            let (server, client) = pair.shake()
            #expect(server == nil && client == nil)
            #expect(pair.server.peer?.authority == authority)
            #expect(pair.server.peer?.uris == certificate.certificate.uris)
            #expect(pair.server.peer?.keyThumbprint == certificate.certificate.spkiThumbprint)
        }
        #expect(phone.certificate.uris.count == 2)
    }

    enum Bad: CaseIterable, CustomTestStringConvertible {
        case expired, notYetValid, serverAuthOnly, noUsage, wrongAuthority, selfSigned, revoked
        var testDescription: String { "\(self)" }
    }

    @Test(arguments: Bad.allCases) func invalidCertificateIsRefusedInTLS(bad: Bad) throws {
        var crl: [UInt8]?
        let certificate: IssuedCertificate
        switch bad {
        case .expired: certificate = try authorities.client(from: .seconds(-600), to: .seconds(-60))
        case .notYetValid: certificate = try authorities.client(from: .seconds(600), to: .seconds(1200))
        case .serverAuthOnly: certificate = try authorities.client(usages: [.serverAuth])
        case .noUsage: certificate = try authorities.client(usages: [])
        case .wrongAuthority:
            certificate = try authorities.client(of: .create(commonName: "websites", days: 10, at: now))
        case .selfSigned:
            let own = try CertificateAuthority.create(commonName: "me", days: 10, at: now)
            certificate = IssuedCertificate(
                certificate: own.certificate, key: try P256PrivateKey(pem: try own.keyPEM()))
        case .revoked:
            certificate = try authorities.client()
            crl = try authorities.websites.makeCRL(
                revoked: [(certificate.certificate.serial, now)], days: 10, at: now)
        }
        let pair = try TLSPair(authorities.serverContext(crl: crl), authorities.clientContext(certificate))
        let (server, client) = pair.shake()
        let reasons: [Bad: String] = [
            .expired: "certificate has expired", .notYetValid: "certificate is not yet valid",
            .revoked: "certificate revoked",
        ]
        #expect(server != nil)
        #expect(client != nil)
        if let reason = reasons[bad] { #expect(server?.reasons.last == reason) }
        #expect(pair.server.peer == nil)
        // The operator learns which certificate it was, and why it was not accepted.
        let refused = server?.certificate
        let words: [Bad: RefusedCertificate.Reason] = [
            .expired: .expired, .notYetValid: .early, .serverAuthOnly: .purpose, .noUsage: .purpose,
            .selfSigned: .issuer, .revoked: .revoked,
        ]
        if let word = words[bad] { #expect(refused?.reason == word) }
        if bad == .wrongAuthority { #expect([.issuer, .signature].contains(refused?.reason)) }
        #expect(refused?.subject == (bad == .selfSigned ? "/CN=me" : "/CN=client"))
        #expect(refused?.issuer == (bad == .selfSigned ? "/CN=me" : "/CN=websites"))
    }

    /// The client chooses the names in a certificate.
    @Test func namesOfARefusedCertificateAreBounded() throws {
        let key = try P256PrivateKey.generate(SystemRandomness())
        let names = ["a\nlevel=error", String(repeating: "x", count: 64), "Zoë"]
        for name in names {
            let request = CertificateRequest(
                key: key.publicKey, commonName: name, usages: [.clientAuth], notBefore: now - .seconds(60),
                notAfter: now - .seconds(30))
            let certificate = IssuedCertificate(certificate: try authorities.websites.issue(request), key: key)
            let pair = try TLSPair(authorities.serverContext(), authorities.clientContext(certificate))
            let subject = try #require(pair.serverFailure()?.certificate?.subject)
            #expect(subject.utf8.count <= 256 && subject.utf8.allSatisfy { (0x20..<0x7f).contains($0) }, "\(subject)")
        }
    }

    @Test func crlAffectsOnlyItsCertificates() throws {
        let revoked = try authorities.client()
        let crl = try authorities.websites.makeCRL(revoked: [(revoked.certificate.serial, now)], days: 10, at: now)
        // The first certificate is not on the list. The authority of the second has no list.
        for certificate in [try authorities.client(), try authorities.client(of: authorities.phones)] {
            let pair = try TLSPair(authorities.serverContext(crl: crl), authorities.clientContext(certificate))
            let (server, client) = pair.shake()
            #expect(server == nil && client == nil)
            #expect(pair.server.peer != nil)
        }
    }

    @Test func expiredCRLRefusesCertificates() throws {
        let crl = try authorities.websites.makeCRL(revoked: [], days: 1, at: now - .seconds(3 * 86_400))
        let pair = try TLSPair(authorities.serverContext(crl: crl), authorities.clientContext(authorities.client()))
        let failure = pair.shake().server
        #expect(failure?.reasons.last == "CRL has expired")
        #expect(failure?.certificate?.reason == .list)
    }

    @Test func oneAuthorityCannotServeBothRoles() throws {
        let ca = try authorities.websites.certificatePEM()
        #expect(throws: TLSFailure.self) {
            try TLSServerContext(
                certificateChainPEM: authorities.server.certificatePEM(),
                privateKeyPEM: authorities.server.keyPEM(), websitesCA: ca, phonesCA: ca)
        }
    }

    @Test func serverNameIsVerified() throws {
        for (host, isRight) in [
            ("localhost", true), ("127.0.0.1", true), ("other.example", false), ("127.0.0.2", false),
        ] {
            let pair = try TLSPair(authorities.serverContext(), authorities.clientContext(), host: host)
            #expect((pair.shake().client == nil) == isRight, "\(host)")
        }
        let stranger = try TLSClientContext(roots: .pem(authorities.phones.certificatePEM()))
        let pair = try TLSPair(authorities.serverContext(), stranger)
        #expect(pair.shake().client?.reasons.contains("certificate verify failed") == true)
        // The alert of this client is the reason that the server reports.
        let system = try TLSPair(authorities.serverContext(), TLSClientContext(roots: .system))
        #expect(system.shake().client != nil)
    }

    @Test func datesAreCheckedByTheGivenClock() throws {
        let roots = TLSClientContext.Roots.pinned(authorities.websites.keyThumbprint)
        let server = try TLSServerContext(
            certificateChainPEM: authorities.server.certificatePEM() + authorities.websites.certificatePEM(),
            privateKeyPEM: authorities.server.keyPEM(), websitesCA: authorities.websites.certificatePEM(),
            phonesCA: authorities.phones.certificatePEM())
        for (days, reason) in [(0, nil), (400, "certificate has expired"), (-400, "certificate is not yet valid")] {
            let clock = WrongTime(by: .seconds(Int64(days) * 86_400))
            let pair = try TLSPair(server, TLSClientContext(roots: roots, dates: .clock(clock)))
            #expect(pair.shake().client?.reasons.last == reason, "\(days)")
            #expect((pair.client.serverCertificate == authorities.server.certificate) == (reason == nil))
        }
    }

    /// Only the dates are not checked: the authority, the name and the usage are.
    @Test func uncheckedDatesLeaveTheOtherChecks() throws {
        let old = now - .seconds(400 * 86_400)
        let authority = try CertificateAuthority.create(commonName: "old", days: 10, at: old)
        let server = try authority.issueServer(names: ["localhost"], days: 10, at: old)
        let context = try TLSServerContext(
            certificateChainPEM: server.certificatePEM() + authority.certificatePEM(),
            privateKeyPEM: server.keyPEM(), websitesCA: authorities.websites.certificatePEM(),
            phonesCA: authorities.phones.certificatePEM())
        func failure(_ pin: [UInt8], _ host: String, _ dates: TLSClientContext.Dates) throws -> TLSFailure? {
            try TLSPair(context, TLSClientContext(roots: .pinned(pin), dates: dates), host: host).shake().client
        }
        #expect(try failure(authority.keyThumbprint, "localhost", .unchecked) == nil)
        #expect(try failure(authority.keyThumbprint, "localhost", .system) != nil)
        #expect(try failure(authority.keyThumbprint, "other.example", .unchecked) != nil)
        #expect(try failure(authorities.websites.keyThumbprint, "localhost", .unchecked) != nil)
    }

    @Test func protocolWithoutALPNIsSpoken() throws {
        func server(_ application: Application) throws -> TLSServerContext {
            try TLSServerContext(
                certificateChainPEM: authorities.server.certificatePEM(), privateKeyPEM: authorities.server.keyPEM(),
                application: application)
        }
        func client(_ application: Application) throws -> TLSClientContext {
            try TLSClientContext(roots: .pem(authorities.websites.certificatePEM()), application: application)
        }
        let unnamed = try TLSPair(server(.unnamed), client(.unnamed))
        let (byServer, byClient) = unnamed.shake()
        #expect(byServer == nil)
        #expect(byClient == nil)
        // A side that requires HTTP/2 accepts no other protocol, and the server name is still
        // verified.
        #expect(try TLSPair(server(.unnamed), client(.http2)).shake().client != nil)
        #expect(try TLSPair(server(.http2), client(.unnamed)).shake().server != nil)
        #expect(try TLSPair(server(.unnamed), client(.unnamed), host: "elsewhere.test").shake().client != nil)
    }

    @Test func pinnedAuthorityIsMatchedByKey() throws {
        let pin = try TLSClientContext(roots: .pinned(authorities.websites.keyThumbprint))
        let leaf = try authorities.server.certificatePEM()
        let chain = try leaf + authorities.websites.certificatePEM()
        func refusal(_ sent: [UInt8], _ client: TLSClientContext, host: String = "localhost") throws -> TLSFailure? {
            let server = try TLSServerContext(
                certificateChainPEM: sent, privateKeyPEM: authorities.server.keyPEM())
            return try TLSPair(server, client, host: host).shake().client
        }
        #expect(try refusal(chain, pin) == nil)
        #expect(try refusal(chain, pin, host: "other.example")?.reasons.contains("certificate verify failed") == true)
        // The server must send the pinned authority, and that authority must have signed the leaf.
        #expect(try refusal(leaf, pin) != nil)
        let other = try authorities.phones.certificatePEM()
        #expect(try refusal(leaf + other, TLSClientContext(roots: .pinned(authorities.phones.keyThumbprint))) != nil)
        #expect(try refusal(chain, TLSClientContext(roots: .pinned([]))) != nil)
        // The twin has the same name and another key.
        let twin = try CertificateAuthority.create(commonName: "websites", days: 10, at: now)
        #expect(try refusal(leaf + twin.certificatePEM(), pin) != nil)
        #expect(try refusal(chain, TLSClientContext(roots: .pinned(twin.keyThumbprint))) != nil)
    }

    @Test func mismatchedKeysAndMalformedPEMAreRefused() throws {
        let certificate = try authorities.server.certificatePEM()
        let otherKey = try authorities.client().keyPEM()
        #expect(throws: TLSFailure.self) {
            try TLSServerContext(certificateChainPEM: certificate, privateKeyPEM: otherKey)
        }
        #expect(throws: TLSFailure.self) {
            try TLSServerContext(certificateChainPEM: Array("nonsense".utf8), privateKeyPEM: otherKey)
        }
        #expect(throws: TLSFailure.self) {
            try TLSServerContext(certificateChainPEM: certificate, privateKeyPEM: Secret([]))
        }
        #expect(throws: TLSFailure.self) {
            try authorities.serverContext(crl: Array("nonsense".utf8))
        }
        // A valid block does not hide that the next is incomplete.
        #expect(throws: TLSFailure.self) {
            try TLSClientContext(roots: .pem(certificate + certificate.dropLast(40)))
        }
    }

    @Test func bytesArriveComplete() throws {
        let pair = try TLSPair(authorities.serverContext(), authorities.clientContext())
        let (server, client) = pair.shake()
        #expect(server == nil && client == nil)
        let sent = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        var received: [UInt8] = []
        var at = 0
        var blocked = 0
        while received.count < sent.count {
            if at < sent.count {
                switch pair.write(pair.server, Array(sent[at...])) {
                case .bytes(let count): at += count
                case .incomplete(let interest):
                    #expect(interest == .write)
                    blocked += 1
                case .failed(let failure):
                    Issue.record("\(failure)")
                    return
                }
            }
            let more = withUnsafeTemporaryAllocation(byteCount: 32_768, alignment: 1) { buffer -> [UInt8]? in
                switch pair.client.read(into: buffer) {
                case .bytes(let count): Array(buffer[..<count])
                case .incomplete: []
                case .closed, .failed: nil
                }
            }
            guard let more else {
                Issue.record("the connection broke")
                return
            }
            received += more
        }
        #expect(received == sent)
        pair.server.shutdown()
        guard case .closed = pair.read(pair.client) else {
            Issue.record("no orderly end")
            return
        }
    }
}
