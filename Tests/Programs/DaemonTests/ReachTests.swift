import Curl
import TLS
import TestSupport
import Testing
import World

@testable import Daemon

/// The other ends of an installation, as `twoefay doctor` finds them: real servers on this machine.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ReachTests {
    private let facts = ExaminedInstallation.healthy

    /// Examines an end. A healthy one may be slow here; tests of hanging ones set their own patience.
    private func examined(_ end: ReachedEnd) async -> [Finding] {
        var patient = end
        if end.patience == ReachedEnd.usualPatience { patient.patience = .seconds(120) }
        let (facts, examined) = (facts, patient)
        return await blocking { examined.findings(facts) }
    }

    private func web(_ server: TestTLSEnd, _ dialogue: ReachedEnd.Dialogue = .http) throws -> ReachedEnd {
        ReachedEnd(
            check: "est", setting: "est.url", host: "localhost", port: server.port, dialogue: dialogue,
            roots: .pem(try TextFile.bytes(server.authorityPath)))
    }

    private func mail(
        _ server: TestMailServer, isSecure: Bool = false, needsLogin: Bool = false, mayBePlain: Bool = false
    ) -> ReachedEnd {
        ReachedEnd(
            check: "mail", setting: "mail.url", host: "localhost", port: server.port, isSecure: isSecure,
            dialogue: .smtp(name: "relay.example.com", needsLogin: needsLogin, mayBePlain: mayBePlain),
            roots: .pem(server.authority))
    }

    @Test func serverIsReachedAndItsClockCompared() async throws {
        let server = try await TestTLSEnd.start()
        let findings = await examined(try web(server))
        #expect(
            findings.map(\.check) == ["est", "clock.est"] && findings.allSatisfy { $0.state == .ok }, "\(findings)")
        #expect(findings[0].measured.contains("its certificate ends in 29 days"))
        #expect(try await server.firstRequest() == "HEAD / HTTP/1.1")
        #expect(server.requests.count == 1)
    }

    @Test func clockOfAServerThatIsWrongIsAFault() async throws {
        let server = try await TestTLSEnd.start(date: SystemTime().now() - .seconds(3600))
        let findings = await examined(try web(server))
        #expect(findings.has("est", .ok) && findings.has("clock.est", .failure, "behind this machine's"), "\(findings)")
    }

    @Test func certificateThatEndsSoonIsAWarning() async throws {
        let server = try await TestTLSEnd.start(age: 25, days: 30)
        #expect(await examined(try web(server)).has("est", .warning, "its certificate ends in 4 days"))
    }

    @Test func expiredCertificateIsNamedWithItsEnd() async throws {
        let server = try await TestTLSEnd.start(age: 5, days: 2)
        let findings = await examined(try web(server, .none))
        #expect(findings.has("est", .failure, "certificate has expired; its certificate expired at "), "\(findings)")
        #expect(findings[0].remedy?.contains("est.url") == true && server.requests == [])
    }

    @Test func certificateOfAnotherAuthorityIsAFault() async throws {
        let (server, other) = (try await TestTLSEnd.start(), try await TestTLSEnd.start())
        var end = try web(server)
        end.roots = .pem(try TextFile.bytes(other.authorityPath))
        #expect(await examined(end).has("est", .failure, "the TLS handshake failed"))
        #expect(server.requests == [])
    }

    @Test func deadPortIsAFault() async throws {
        let port = try FreePort()
        for host in ["127.0.0.1", "localhost"] {
            let end = ReachedEnd(check: "push.apns", setting: "push.apns.endpoint", host: host, port: port.port)
            #expect(await examined(end).has("push.apns", .failure, "Connection refused"))
        }
        let unknown = ReachedEnd(check: "mail", setting: "mail.url", host: "no.such.invalid", port: 25)
        #expect(await examined(unknown).has("mail", .failure, "the name is not known"))
    }

    @Test func mailServerIsAskedWithoutSendingAnything() async throws {
        let server = try await TestMailServer.start {
            $0.tls = .starttls
            $0.login = "relay:secret"
        }
        let findings = await examined(mail(server, needsLogin: true))
        #expect(findings.has("mail", .ok, "answers EHLO under TLS; its certificate ends in 9 days") == false)
        #expect(findings.has("mail", .warning, "answers EHLO under TLS; its certificate ends in 9 days"), "\(findings)")
        try await server.hears(.quit)
        #expect(server.said == ["EHLO", "STARTTLS", "EHLO", "QUIT"])
    }

    @Test func mailServerWithTLSFromTheFirstByteIsAsked() async throws {
        let server = try await TestMailServer.start { $0.tls = .implicit }
        #expect(await examined(mail(server, isSecure: true)).has("mail", .warning, "answers EHLO under TLS"))
        #expect(await examined(mail(server, isSecure: true, needsLogin: true)).has("mail", .failure, "offers no login"))
    }

    @Test func mailServerWithoutTLSIsAFaultUnlessItIsHere() async throws {
        let server = try await TestMailServer.start()
        #expect(await examined(mail(server)).has("mail", .failure, "does not offer STARTTLS"))
        #expect(await examined(mail(server, mayBePlain: true)).has("mail", .ok, "without TLS on this machine"))
    }

    @Test func mailServerThatRefusesOrHangsIsAFault() async throws {
        let refusing = try await TestMailServer.start { $0.faults = [.greeting: [.answer("554 no service")]] }
        #expect(await examined(mail(refusing)).has("mail", .failure, "the greeting is 554 no service"))
        let deaf = try await TestMailServer.start { $0.faults = [.hello: [.answer("502 what?")]] }
        #expect(await examined(mail(deaf)).has("mail", .failure, "EHLO is refused"))
        let hanging = try await TestMailServer.start { $0.faults = [.greeting: [.hang]] }
        var end = mail(hanging)
        end.patience = .milliseconds(300)
        #expect(await examined(end).has("mail", .failure, "no greeting"))
    }

    /// The settings name all ends, each with its own authority.
    @Test func everyEndOfTheSettingsIsAsked() async throws {
        let site = try ExaminedInstallation()
        let (server, dead) = (try await TestTLSEnd.start(), try FreePort())
        try TextFile.write(TextFile.bytes(server.authorityPath), to: site.path("ends.pem"))
        try TextFile.write("secret-password-1\n", to: site.path("password"))
        let common = "username: u, password_file: password, ca: ends.pem"
        try site.set(
            "sms.gateways",
            to: "[{name: one, kind: kannel, url: \"https://localhost:\(server.port)/send\", \(common)}, "
                + "{name: two, kind: smpp, address: \"localhost:\(server.port)\", system_id: s, password_file: password, "
                + "ca: ends.pem}]")
        try site.set("sms.allow", to: "[\"+49\"]")
        try site.set(
            "directories",
            to: "[{name: staff, website: shop, kind: ldap, url: \"ldaps://localhost:\(server.port) "
                + "ldaps://localhost:\(dead.port)\", ca: ends.pem, base: \"dc=x\"}]")
        try site.set("metrics.listen", to: "127.0.0.1:\(dead.port)")
        let findings = try await site.examined(offline: false)
        #expect(findings.has("sms.one", .ok) && findings.has("clock.sms.one", .ok), "\(findings)")
        #expect(findings.has("sms.two", .ok, "answers with TLS") && findings.has("directories.staff.1", .ok))
        #expect(findings.has("directories.staff.2", .failure, "Connection refused"))
        #expect(findings.has("relay.process", .warning, "does not answer"))
        #expect(findings.has("port.metrics", .warning, "which is free"))
        let offline = try await site.examined()
        for check in ["sms.one", "sms.two", "directories.staff.1", "relay", "relay.process"] {
            #expect(offline.has(check, .skipped, "--offline"), "\(check)")
        }
    }
}
