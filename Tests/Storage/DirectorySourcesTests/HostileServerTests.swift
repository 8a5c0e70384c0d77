import Bytes
import TestSupport
import Testing
import World

@testable import DirectorySources

/// Servers that break the protocol. Each read must end with a failure, and never with a part of the
/// users.
@Suite(.timeLimit(.minutes(10)), .mayBlock) struct HostileServerTests {
    enum Fault: String, CaseIterable {
        /// It never answers the bind.
        case silent
        /// It closes the connection after one entry.
        case cut
        /// It sends one entry and then nothing.
        case stalled
        /// It sends half of a message and then nothing.
        case half
        /// It announces a message of a gigabyte.
        case huge
        /// It returns pages without entries for ever.
        case endless
        /// It answers as a web server.
        case garbage
        /// It answers the bind, or the search, with a message whose number is cut off.
        case unnumberedBind, unnumbered
        /// It sends an entry whose name, first attribute, last attribute or value is cut off.
        case nameless, formless, cropped, worthless
        /// It ends the search with a referral to another server.
        case referral
        /// It ends a page without saying whether another one follows.
        case forgetful

        /// Whether the read ends by the time limit for an answer.
        var isWaitedFor: Bool { [.silent, .stalled, .half, .huge].contains(self) }
    }

    @Test(arguments: Fault.allCases) func brokenAnswerIsAFailure(fault: Fault) async throws {
        let server = try await HostileServer(fault.rawValue)
        let (_, failure) = read(server, timeout: fault.isWaitedFor ? .seconds(1) : .seconds(60))
        let kinds: [LDAPFailure.Kind] =
            switch fault {
            case .silent, .stalled, .half: [.timeout]
            case .cut: [.unreachable]
            case .huge: [.unreachable, .timeout]
            case .garbage: [.unreachable]
            case .endless, .forgetful, .unnumberedBind, .unnumbered, .nameless, .formless, .cropped, .worthless:
                [.malformed]
            case .referral: [.refused]
            }
        #expect(failure.map { kinds.contains($0.kind) } == true, "\(failure as Any)")
        // The referral points to a second port of the same script, which nobody may call.
        #expect(!server.wasReferred)
    }

    /// RFC 4511 §4.5.3: references to other servers may stand between the entries.
    @Test func referencesBetweenEntriesAreNotFollowed() async throws {
        let server = try await HostileServer("reference")
        let (names, failure) = read(server)
        #expect(failure == nil && names == ["uid=ada"])
        #expect(!server.wasReferred)
    }

    // MARK: The limit for all of it

    /// A byte now and then is an answer for libldap and for the socket, whose limits begin again.
    /// It comes before the handshake has ended, or within a message.
    @Test(arguments: ["handshake", "dripping"]) func serverThatSendsByteByByteIsLeft(fault: String) async throws {
        var limits = LDAPLimits()
        limits.total = .seconds(2)
        let server = try await HostileServer(fault)
        let (_, failure) = read(server, scheme: "ldaps", limits: limits)
        #expect(
            failure == LDAPFailure(.timeout, "the directory was not read to its end within 2 seconds"),
            "\(failure as Any)")
        #expect(!server.wasEndured)
    }

    @Test func limitIsForAllSearchesTogether() async throws {
        let time = TestTime()
        let server = try await HostileServer("reference")
        let connection = try connection(to: server, time: time)
        var names: [String] = []
        func search() throws(LDAPFailure) {
            try connection.search("(uid=*)", below: "", attributes: ["uid"], pageSize: 10) { names.append($0.dn) }
        }
        try search()
        time.advance(by: LDAPLimits().total)
        #expect { try search() } throws: { ($0 as? LDAPFailure)?.kind == .timeout }
        #expect(names == ["uid=ada"] && !server.wasReferred)
    }

    // MARK: Text

    /// Somebody on the path can send anything until the certificate is verified. libldap ends the
    /// process for this message, so it must not get to read it.
    @Test func messageBeforeTLSIsNeverParsed() async throws {
        let (_, failure) = read(try await HostileServer("unsolicited"), scheme: "ldaps")
        #expect(failure?.kind == .certificate, "\(failure as Any)")
    }

    @Test func textOfTheServerCannotControlATerminal() async throws {
        let (_, failure) = read(try await HostileServer("colourful"))
        let message = try #require(failure?.message)
        #expect(message.contains("pwned") && message.utf8.allSatisfy { (0x20..<0x7f).contains($0) })
        #expect(message.utf8.count < 500)
    }

    private func connection(
        to server: HostileServer, scheme: String = "ldap", timeout: Duration = .seconds(60),
        limits: LDAPLimits = LDAPLimits(), time: any TimeSource = SystemTime()
    ) throws(LDAPFailure) -> LDAPConnection {
        try LDAPConnection(
            LDAPServer(
                urls: ["\(scheme)://127.0.0.1:\(server.port)"], authority: server.authority, isPlain: true,
                account: .init(dn: "cn=admin", password: Secret(Array("password".utf8))), timeout: timeout),
            limits: limits, time: time)
    }

    private func read(
        _ server: HostileServer, scheme: String = "ldap", timeout: Duration = .seconds(60),
        limits: LDAPLimits = LDAPLimits()
    ) -> ([String], LDAPFailure?) {
        var names: [String] = []
        do throws(LDAPFailure) {
            let connection = try connection(to: server, scheme: scheme, timeout: timeout, limits: limits)
            try connection.search("(uid=*)", below: "", attributes: ["uid"], pageSize: 10) { names.append($0.dn) }
            return (names, nil)
        } catch {
            return (names, error)
        }
    }
}
