import Bytes
import CLinux
import EventLoop
import Glibc
import TestSupport
import Testing
import World

@testable import Curl

@Suite(.timeLimit(.minutes(5))) struct SMTPSecurityTests {
    private func send(_ server: SMTPServer) async throws -> Result<SMTPReply, SMTPFailure> {
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        defer { group.stopAndJoin() }
        let client = SMTPClient(server, time: SystemTime())
        let mail = SMTPTransfer(
            from: "a@example.com", to: "b@example.com", data: Array("x\r\n".utf8), deadline: timeout)
        let result = await group.loops[0].perform { await client.send(mail) }
        client.close()
        return result
    }

    private func server(
        _ test: TestMailServer, _ scheme: String = "smtp", password: String? = nil, trusts: Bool = true
    ) throws -> SMTPServer {
        var server = SMTPServer(try #require(SMTPAddress("\(scheme)://localhost:\(test.port)")))
        server.connectTimeout = timeout
        if trusts { server.extraTrust = test.authority }
        server.login = password.map { SMTPServer.Login(username: "relay", password: Secret(utf8: $0)) }
        return server
    }

    private func cause(_ result: Result<SMTPReply, SMTPFailure>) -> SMTPFailure.Cause? {
        if case .failure(let failure) = result { failure.cause } else { nil }
    }

    @Test(arguments: [("smtp", TestMailServer.TLS.starttls), ("smtps", .implicit)])
    func loginSucceedsOverTLS(_ scheme: String, _ tls: TestMailServer.TLS) async throws {
        let test = try await TestMailServer.start { ($0.tls, $0.login) = (tls, "relay:s3 cr\"et:ä") }
        _ = try await send(try server(test, scheme, password: "s3 cr\"et:ä")).get()
        let mail = try await test.mail()
        #expect(mail.overTLS)
        #expect(mail.user == "relay")
    }

    /// Servers announce mechanisms for which they have no secrets. libcurl alone would try the
    /// first and be refused.
    @Test(arguments: ["DIGEST-MD5 CRAM-MD5 NTLM GSSAPI LOGIN PLAIN", "GSSAPI NTLM LOGIN"])
    func everySupportedLoginMechanismWorks(_ mechanisms: String) async throws {
        let test = try await TestMailServer.start {
            ($0.tls, $0.login, $0.mechanisms) = (.starttls, "relay@example.com:right", mechanisms)
        }
        var server = try server(test)
        server.login = SMTPServer.Login(username: "relay@example.com", password: Secret(utf8: "right"))
        _ = try await send(server).get()
        #expect(try await test.mail().user == "relay@example.com")
    }

    @Test func wrongPasswordIsNotRetried() async throws {
        let test = try await TestMailServer.start { ($0.tls, $0.login) = (.starttls, "relay:right") }
        guard case .failure(let failure) = try await send(try server(test, password: "wr0ng")) else {
            throw Child.Problem(description: "it was handed in")
        }
        #expect(failure.cause == .refused)
        #expect(failure.stage == .login)
        #expect(failure.reply?.code == 535)
        #expect(!"\(failure)".contains("wr0ng"))
        #expect(!test.said.contains("MAIL"))
    }

    /// An attacker between the relay and the server can remove the offer of STARTTLS.
    @Test func noMailIsSentWithoutTLS() async throws {
        let test = try await TestMailServer.start { $0.login = "relay:right" }
        #expect(cause(try await send(try server(test, password: "right"))) == .insecure)
        #expect(test.said.allSatisfy { ["EHLO", "HELO", "QUIT"].contains($0) })
    }

    @Test func noMailIsSentWhenStarttlsIsRefused() async throws {
        let test = try await TestMailServer.start {
            ($0.tls, $0.faults) = (.starttls, [.startTLS: [.answer("454 4.7.0 not now")]])
        }
        guard case .failure(let failure) = try await send(try server(test)) else {
            throw Child.Problem(description: "it was handed in")
        }
        #expect(failure.stage == .starttls)
        #expect(failure.reply?.code == 454)
        #expect(!test.said.contains("MAIL"))
    }

    @Test(arguments: [("smtp", TestMailServer.TLS.starttls), ("smtps", .implicit)])
    func noMailIsSentToAnUntrustedServer(_ scheme: String, _ tls: TestMailServer.TLS) async throws {
        let test = try await TestMailServer.start { ($0.tls, $0.login) = (tls, "relay:right") }
        let server = try server(test, scheme, password: "right", trusts: false)
        #expect(cause(try await send(server)) == .untrusted)
        #expect(!test.said.contains("AUTH") && !test.said.contains("MAIL"))
    }

    /// The certificate names localhost and 127.0.0.1.
    @Test func serverNameIsVerified() async throws {
        let test = try await TestMailServer.start { $0.tls = .implicit }
        var server = try server(test, "smtps")
        server.address = try #require(SMTPAddress("smtps://127.0.0.2:\(test.port)"))
        // The server listens on 127.0.0.1 only, so the connection fails before the name is checked.
        #expect(cause(try await send(server)) == .unreachable)
        server.address = try #require(SMTPAddress("smtps://localhost.localdomain:\(test.port)"))
        #expect([.untrusted, .unknownHost].contains(cause(try await send(server))))
    }

    @Test func plainSMTPIsLimitedToLoopback() throws {
        func socketAddress(_ host: String) throws -> [UInt8] {
            var four = sockaddr_in()
            var six = sockaddr_in6()
            if inet_pton(AF_INET, host, &four.sin_addr) == 1 {
                four.sin_family = sa_family_t(AF_INET)
                return withUnsafeBytes(of: four) { Array($0) }
            }
            six.sin6_family = sa_family_t(AF_INET6)
            try #require(inet_pton(AF_INET6, host, &six.sin6_addr) == 1)
            return withUnsafeBytes(of: six) { Array($0) }
        }
        let may = { (host: String, needsLoopback: Bool) in
            let mail = RunningMail([], needsLoopback: needsLoopback)
            return try socketAddress(host).withUnsafeBytes { mail.mayConnect(to: $0) }
        }
        for host in ["127.0.0.1", "127.8.9.10", "::1"] { #expect(try may(host, true)) }
        for host in ["10.0.0.1", "192.0.2.1", "::2", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "0.0.0.0", "::"] {
            #expect(try !may(host, true), "\(host)")
            #expect(try may(host, false))
        }
    }

    @Test(arguments: [
        ("smtp://127.0.0.1", false), ("smtp://localhost:2525", false), ("smtp://[::1]:25", false),
        ("smtp://mail.example.com", true), ("smtp://10.0.0.1", true), ("smtp://127.example.com", true),
    ])
    func tlsRequirementFollowsTheAddress(_ address: String, _ wanted: Bool) throws {
        var server = SMTPServer(try #require(SMTPAddress(address)))
        #expect(server.wantsTLS == wanted)
        server.login = SMTPServer.Login(username: "a", password: Secret(utf8: "b"))
        #expect(server.wantsTLS)
    }

    @Test(arguments: [
        "", "smtp:", "smtp://", "smtp://:25", "http://a.example", "smtp://a.example/", "smtp://a.example:0",
        "smtp://a b",
        "smtp://user:pass@a.example", "smtp://a.example:99999", "smtp://a.example\r\n", "SMTP://a.example",
    ])
    func malformedServerURLIsRefused(_ text: String) { #expect(SMTPAddress(text) == nil) }

    @Test func serverURLRoundTrips() throws {
        for text in ["smtp://mail.example.com", "smtps://mail.example.com:465", "smtp://[::1]:25"] {
            #expect(SMTPAddress(text)?.text == text)
        }
    }
}
