import Glibc
import JSON
import TestSupport
import Testing

/// The built `twoefay demo`: its access control, its functions, and its end.
@Suite("twoefay demo", .timeLimit(.minutes(15))) struct DashboardDemoTests {
    private let scratch: TemporaryDirectory

    init() throws { scratch = try TemporaryDirectory() }

    private func isGone(_ pid: pid_t) -> Bool { kill(pid, 0) != 0 && errno == ESRCH }

    private static let origins = ["dashboard", "website", "phone"]

    @Test func dashboardAdmitsVisitorsWithTheSecret() async throws {
        let demo = try await RunningDemo(scratch)
        let cookie = try await demo.cookie()
        for name in Self.origins {
            let origin = try demo.origin(name)
            for stranger in [
                "\(origin)/", "\(origin)/?run=", "\(origin)/?run=wrong", "\(origin)/feed", "\(origin)/about",
            ] {
                let answer = try await demo.curl(stranger)
                #expect(answer.status == 403 && answer.body.contains("terminal"), "\(stranger)")
            }
            let brought = try await demo.curl(try #require(demo.ready[name]?.string))
            #expect(brought.status == 303 && brought.field("location") == "/")
            let field = try #require(brought.field("set-cookie"))
            #expect(field.hasPrefix(cookie) && field.contains("HttpOnly") && field.contains("SameSite=Strict"))
            let page = try await demo.curl("\(origin)/", cookie: cookie)
            #expect(page.status == 200 && page.field("cache-control") == "no-store", "\(name)")
        }
        let second = try await demo.curl(try #require(demo.ready["phone_2"]?.string))
        #expect(second.field("location") == "/?phone=2")
    }

    /// Checks headers and markup only, because the browser enforces which sources a page may load
    /// and which pages may frame it.
    @Test func pagesCarryAContentSecurityPolicy() async throws {
        let demo = try await RunningDemo(scratch)
        let cookie = try await demo.cookie()
        let (dashboard, website, phone) = (
            try demo.origin("dashboard"), try demo.origin("website"), try demo.origin("phone")
        )
        for (origin, ancestors) in [(dashboard, "'none'"), (website, dashboard), (phone, dashboard)] {
            let page = try await demo.curl("\(origin)/", cookie: cookie)
            let policy = try #require(page.field("content-security-policy")).split(separator: "; ").map { String($0) }
            #expect(policy.contains("default-src 'none'") && policy.contains("script-src 'self'"))
            #expect(policy.contains("frame-ancestors \(ancestors)"), "\(policy)")
            let frames = policy.filter { $0.hasPrefix("frame-src") }
            #expect(frames == (origin == dashboard ? ["frame-src \(website) \(phone)"] : []))
            #expect(!page.body.contains("<style") && !page.body.contains("style=") && !page.body.contains("onclick"))
            #expect(!page.body.contains("//cdn") && !page.body.contains("https://"))
        }
    }

    @Test func otherHostsAndOriginsAreRefused() async throws {
        let demo = try await RunningDemo(scratch)
        let cookie = try await demo.cookie()
        for name in Self.origins {
            let origin = try demo.origin(name)
            let rebound = try await demo.curl("\(origin)/", cookie: cookie, ["--header", "Host: evil.example"])
            #expect(rebound.status == 421)
            for other in ["http://evil.example", "null"] {
                let foreign = try await demo.curl(
                    "\(origin)/switch", cookie: cookie, ["--header", "Origin: \(other)", "--data", "{}"])
                #expect(foreign.status == 403, "\(name) from \(other)")
            }
        }
    }

    /// The test's requests are not signed, so the relay itself refuses them.
    @Test func phonePageRequestsReachTheRelay() async throws {
        let demo = try await RunningDemo(scratch)
        let cookie = try await demo.cookie()
        let origin = try demo.origin("phone")
        let about = try await demo.curl("\(origin)/about?phone=2", cookie: cookie).json
        #expect(about["origin"] == demo.ready["relay"] && about["phone"] == 2)
        #expect(about["push_token"]?.string?.count == 64)
        #expect(try await demo.curl("\(origin)/about", cookie: cookie).json["push_token"] != about["push_token"])

        let refused = try await demo.post("\(origin)/relay/verify", ["name": "Ada's"], cookie: cookie)
        #expect(refused.status == 400 && refused.json["code"] == "invalid")
        let nonce = try await demo.post("\(origin)/relay/pending", [:], cookie: cookie)
        #expect(nonce.status == 401)
        for path in ["/relay/login", "/relay/../login", "/relay", "/relay/"] {
            let answer = try await demo.post("\(origin)\(path)", [:], cookie: cookie)
            #expect(answer.status == 404, "\(path)")
        }
        let said = try await demo.feed(cookie: cookie) { $0["head"] == "401" }
        let asked = try #require(said.first { $0["head"] == "POST /verify" })
        #expect(asked["from"] == "phone" && asked["to"] == "relay" && asked["body"] == ["name": "Ada's"])
        #expect(said.contains { $0["from"] == "relay" && $0["to"] == "phone" && $0["head"] == "400" })
        let seen = try await demo.curl("\(origin)/scan", cookie: cookie, ["--data", ""])
        #expect(seen.status == 404)
    }

    /// Python's smtplib sends the mails, and curl sends the text message in place of the relay.
    @Test func mailsAndTextMessagesAreCaught() async throws {
        let demo = try await RunningDemo(scratch)
        let cookie = try await demo.cookie()
        let port = try #require(demo.ready["mail"]?.string?.split(separator: ":").last)
        let script = """
            import email.message, smtplib, sys
            mail = email.message.EmailMessage()
            mail["From"], mail["To"], mail["Subject"] = "Der Läden <login@shop.example>", "zoe@example.com", "Grüße aus Köln"
            mail.set_content(".Punkt\\nIhr Code: 123456 – gültig\\n", cte=sys.argv[2])
            with smtplib.SMTP("127.0.0.1", int(sys.argv[1])) as server:
                server.send_message(mail)
                server.send_message(mail, to_addrs=["eve@example.com", "bob@example.com"])
            """
        for encoding in ["quoted-printable", "base64", "8bit"] {
            let sent = try await Child.run("python3", ["-c", script, String(port), encoding])
            #expect(sent.status == 0, "\(sent.errors)")
        }
        let text = try await demo.post(
            try #require(demo.ready["sms"]?.string), ["to": "+491511", "from": "TheShop", "text": "Code 654321 €"],
            cookie: "")
        #expect(text.status == 200)

        let first = try await demo.messages(phone: 1, cookie: cookie)
        let mails = first.filter { $0["kind"] == "mail" }
        #expect(mails.map { $0["to"] }.prefix(3) == ["zoe@example.com", "eve@example.com", "bob@example.com"])
        #expect(mails.count == 9)
        for mail in mails {
            #expect(mail["from"] == "Der Läden <login@shop.example>" && mail["subject"] == "Grüße aus Köln")
            #expect(mail["text"] == ".Punkt\nIhr Code: 123456 – gültig\n")
        }
        #expect(first.last?["kind"] == "sms" && first.last?["text"] == "Code 654321 €")
        #expect(try await demo.messages(phone: 2, cookie: cookie).count == 10)
        let said = try await demo.feed(cookie: cookie) { $0["from"] == "SMS gateway" }
        #expect(said.contains { $0["to"] == "mail server" } && said.contains { $0["to"] == "SMS gateway" })
    }

    @Test func phonesCanBeTakenOffline() async throws {
        let demo = try await RunningDemo(scratch)
        let cookie = try await demo.cookie()
        let (dashboard, phone) = (try demo.origin("dashboard"), try demo.origin("phone"))
        let sms = try #require(demo.ready["sms"]?.string)
        let off = try await demo.post("\(dashboard)/switch", ["name": "phone", "state": "offline"], cookie: cookie)
        #expect(off.status == 200 && off.json["phone"] == "offline")
        let call = try await demo.post("\(phone)/relay/pending", [:], cookie: cookie)
        #expect(call.status == 503 && call.json["code"] == "offline")
        _ = try await demo.post(sms, ["to": "+491511", "text": "1"], cookie: "")
        let nothing = try await demo.curl("\(phone)/messages?after=0&offline=false", cookie: cookie).json
        #expect(nothing["messages"] == [] && nothing["offline"] == true)
        _ = try await demo.post("\(dashboard)/switch", ["name": "phone", "state": "online"], cookie: cookie)
        #expect(try await demo.messages(phone: 1, cookie: cookie).map { $0["text"] } == ["1"])
        for (name, state) in [("phone", "up"), ("push", "offline"), ("relay", "fast"), ("nothing", "up")] {
            let answer = try await demo.post(
                "\(dashboard)/switch", ["name": .string(name), "state": .string(state)], cookie: cookie)
            #expect(answer.status == 400, "\(name) \(state)")
        }
    }

    @Test func relayCanBeKilledAndRestarted() async throws {
        let demo = try await RunningDemo(scratch)
        let cookie = try await demo.cookie()
        let (dashboard, phone) = (try demo.origin("dashboard"), try demo.origin("phone"))
        _ = try await demo.post("\(dashboard)/switch", ["name": "relay", "state": "down"], cookie: cookie)
        _ = try await demo.feed(cookie: cookie) { $0["note"] == "relay_killed" }
        #expect(isGone(demo.relay))
        let dead = try await demo.post("\(phone)/relay/verify", [:], cookie: cookie)
        #expect(dead.status == 502 && dead.json["code"] == "unreached")
        let again = try await demo.post("\(dashboard)/switch", ["name": "relay", "state": "up"], cookie: cookie)
        #expect(again.json["relay"] == "up")
        #expect(try await demo.post("\(phone)/relay/verify", [:], cookie: cookie).status == 400)
        demo.child.signal(SIGTERM)
        #expect(await demo.child.ended().status == 0)
        #expect(scratch.names == [])
    }

    @Test func dashboardReportsADeadRelay() async throws {
        let demo = try await RunningDemo(scratch)
        let cookie = try await demo.cookie()
        kill(demo.relay, SIGKILL)
        let said = try await demo.feed(cookie: cookie) { $0["note"] == "relay_died" }
        #expect(said.last?["text"]?.string?.contains("event=daemon.started") == true)
        let origin = try demo.origin("dashboard")
        let again = try await demo.post("\(origin)/switch", ["name": "relay", "state": "up"], cookie: cookie)
        #expect(again.json["relay"] == "up")
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP]) func dashboardCleansUpAfterSIGTERM(signal: Int32) async throws {
        let demo = try await RunningDemo(scratch)
        let cookie = try await demo.cookie()
        // The demo holds this request until it ends.
        let origin = try demo.origin("phone")
        let held = try Child(
            "curl",
            [
                "--silent", "--verbose", "--max-time", "60", "--cookie", cookie,
                "\(origin)/messages?after=0&offline=false",
            ])
        _ = try await held.line(.errors, with: "> GET /messages")
        demo.child.signal(signal)
        let ended = await demo.child.ended()
        #expect(ended.status == 0 && ended.errors == "")
        #expect(ended.output.split(separator: "\n").last?.contains("\"ended\"") == true)
        #expect(isGone(demo.relay))
        #expect(scratch.names == [])
        _ = await held.ended()
    }

    @Test func dashboardCleansUpAfterSIGKILL() async throws {
        let demo = try await RunningDemo(scratch)
        demo.child.signal(SIGKILL)
        // The process that cleans up holds the same output, so this waits for it too.
        #expect(await demo.child.ended().status == 128 + SIGKILL)
        #expect(scratch.names == [])
    }

    @Test func dashboardPrintsItsAddress() async throws {
        let demo = try Child(try BuiltProgram.twoefay.path, ["demo"], environment: ["TMPDIR": scratch.path])
        let line = try await demo.line(.output, with: "a second phone")
        #expect(line.contains("http://localhost:") && line.contains("/?phone=2&run="))
        #expect(demo.written.output.contains("twoefayd as process"))
        demo.signal(SIGINT)
        #expect(await demo.ended().output.contains("the directory of this run is removed"))
        #expect(scratch.names == [])
    }

    @Test func dashboardUsesTheGivenPorts() async throws {
        let demo = try await RunningDemo(scratch)
        let port = try #require(try demo.origin("dashboard").split(separator: ":").last)
        let second = try await Child(
            try BuiltProgram.twoefay.path, ["demo", "--port", String(port)], environment: ["TMPDIR": scratch.path]
        ).ended()
        #expect(second.status == 4)
        #expect(second.errors.contains("the pages cannot be served"))
        // The first demo keeps its ports until this signal.
        demo.child.signal(SIGINT)
        #expect(await demo.child.ended().status == 0)
    }

    @Test(arguments: [["--port", "0"], ["--port", "65534"], ["--port", "8000", "--terminal"]])
    func invalidPortsAreRefused(
        arguments: [String]
    ) async throws {
        let demo = try await Child(
            try BuiltProgram.twoefay.path, ["demo"] + arguments, environment: ["TMPDIR": scratch.path]
        ).ended()
        #expect(demo.status == 2)
        #expect(scratch.names == [])
    }

    /// The demo leaves its tables in the given store. A second demo refuses a store that already
    /// has an installation.
    @Test func dashboardRunsOnMariaDBAndRefusesAnExistingStore() async throws {
        let server = try MariaDBServer.shared()
        let url = server.url(try server.freshDatabase())
        let demo = try await RunningDemo(scratch, "--storage", url)
        let cookie = try await demo.cookie()
        let origin = try demo.origin("phone")
        #expect(try await demo.post("\(origin)/relay/verify", [:], cookie: cookie).status == 400)
        demo.child.signal(SIGINT)
        #expect(await demo.child.ended().status == 0)
        let second = try await Child(
            try BuiltProgram.twoefay.path, ["demo", "--storage", url], environment: ["TMPDIR": scratch.path]
        ).ended()
        #expect(second.status == 4)
        #expect(second.errors.contains("belongs to an installation"))
        #expect(scratch.names == [])
    }
}
