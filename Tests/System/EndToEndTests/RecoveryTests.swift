import JSON
import TestSupport
import Testing
import World

/// The way back from a lost token, over the real wire: mails, the website's requests, the phone's
/// signature, and the operator's commands.
@Suite("Recovery of a lost factor", .timeLimit(.minutes(15)), .mayBlock) struct RecoveryTests {
    private static let page = "https://shop.example.com/recover"

    /// A shop whose users can recover factors, and the mailbox of its users.
    private struct Scene {
        let fixture: Fixture
        let shop: APIClient
        let server: AioSMTPServer

        func start(_ username: String) async throws {
            let started = try await shop.curl("POST", "/user/\(username)/recovery", ["factor": "hotp"])
            #expect(started.status == 202 && started.json?.object?.names == ["expires_at"], "\(started)")
        }

        /// Waits for the mail with this subject, and returns the token in its link.
        func token(_ label: String, _ subject: String, of count: Int) async throws -> String {
            let mails = try await DeliveredMail.inMaildir(server.maildir, count)
            let mail = try #require(mails.last)
            #expect(mail.subject == subject && mail.to == "ann@example.org", "\(mail.subject)")
            let start = "\(RecoveryTests.page)#\(label)="
            let line = try #require(
                mail.text.split(separator: "\n").first { $0.hasPrefix(start) }, "\(mail.text)")
            let token = String(line.dropFirst(start.count))
            fixture.record(token)
            return token
        }

        func open(_ token: String) async throws -> String {
            let opened = try await shop.curl("POST", "/recovery", ["token": .string(token)])
            #expect(opened.status == 201 && opened["state"] == "opened", "\(opened)")
            let handle = try #require(opened["handle"]?.string)
            fixture.record(handle)
            return handle
        }

        func call(_ path: String, _ handle: String, _ more: JSONObject = [:]) async throws -> CurlCaller.Answer {
            var body: JSONObject = ["handle": .string(handle)]
            for member in more.members { body.set(member.name, member.value) }
            return try await shop.curl("POST", "/recovery/\(path)", body)
        }
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func lostTokenIsReplacedWithThePhone(_ kind: StoreKind) async throws {
        let server = try await AioSMTPServer.knowingTheRelay()
        let files = try TemporaryDirectory()
        try await Fixture.run(kind) { text throws in
            try server.use(in: &text, files)
        } _: { fixture in
            let policies = ["--recovery-url", Self.page, "--further-factors", "website", "--display-name", "Shop"]
            let shop = try await fixture.website("shop", policies, answers: nil)
            let scene = Scene(fixture: fixture, shop: shop, server: server)
            let (token, code) = try await shop.register("ann", with: ["email": "ann@example.org", "language": "en"])
            let lost: JSONObject = ["secret": "hex:0102030405060708090a0b0c0d0e0f1011121314"]
            #expect(try await shop.curl("POST", "/user/ann/hotp", lost).status == 201)
            let phone = try await Phone(in: fixture, token: token, code: code)
            _ = try await DeliveredMail.inMaildir(server.maildir, 1)

            // A stranger's name gets the same answer, and no mail.
            try await scene.start("nobody")
            try await scene.start("ann")
            let link = try await scene.token("recovery", "Get back into your account at Shop", of: 2)
            // A mail scanner's GET, wherever it goes, uses nothing up.
            #expect(try await fixture.nobody.curl("GET", "/recovery").status == 401)
            #expect(try await shop.curl("GET", "/recovery").status == 403)
            let handle = try await scene.open(link)
            #expect(try await shop.curl("POST", "/recovery", ["token": .string(link)]).status == 404)

            let asked = try await scene.call("proof", handle)
            #expect(asked.status == 403 && asked["code"] == "approval_required", "\(asked)")
            let list = try await phone.client.curl("GET", "/recovery")
            #expect(list["recoveries"]?.array?.first?.object?["state"] == "opened", "\(list)")
            let signed = try await phone.sign("approve", in: fixture, number: asked["number"]?.string)
            let said = try await phone.client.curl(
                "POST", "/success", ["challenge": .string(signed.challenge), "answer": .string(signed.answer)])
            #expect(said["login"] == "success", "\(said)")
            let proved = try await scene.call("proof", handle, ["approval": .string(signed.challenge)])
            #expect(proved["state"] == "ready" && proved["proof"] == "phone", "\(proved)")
            _ = try await scene.token("cancel", "Your login at Shop is about to change", of: 3)

            // The secret of RFC 4226, whose codes are published.
            let new: JSONObject = ["secret": "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"]
            let finished = try await scene.call("finish", handle, new)
            #expect(finished.status == 201 && finished["state"] == "active", "\(finished)")
            let done = try await DeliveredMail.inMaildir(server.maildir, 4)
            #expect(done.last?.subject == "Your login at Shop was changed")
            #expect(try await scene.call("state", handle)["state"] == "done")
            #expect(try await scene.call("finish", handle, new).status == 409)
            let login = try await CodeLogin(shop, "ann", ["factors": ["hotp"]])
            try await login.succeeds(by: "hotp", worth: "substantial", "755224")
            try await operatorStartsAndCancels(scene, phone)
        }
    }

    /// The help desk starts a recovery and vouches for the user; the user's phone stops it.
    private func operatorStartsAndCancels(_ scene: Scene, _ phone: Phone) async throws {
        let who = ["ann", "--website", "shop", "--factor", "hotp"]
        let relay = scene.fixture.relay
        try await relay.tool(["user", "recover"] + who)
        let link = try await scene.token("recovery", "Get back into your account at Shop", of: 5)
        let handle = try await scene.open(link)
        let ownersCode = try #require(try await scene.call("state", handle)["spoken_code"]?.string)
        // Somebody who reads the mailbox opens a newer link while the owner calls the help desk.
        try await scene.start("ann")
        let strangers = try await scene.open(
            try await scene.token("recovery", "Get back into your account at Shop", of: 6))
        let approve = { (code: String) -> [String] in
            ["user", "approve-recovery"] + who + ["--code", code, "--by", "Ben Berg", "--note", "passport"]
        }
        let strangersCode = try #require(try await scene.call("state", strangers)["spoken_code"]?.string)
        #expect(ownersCode.utf8.count == 6 && ownersCode != strangersCode)
        let wrong = ["000000", "000001", "000002"].first { $0 != ownersCode && $0 != strangersCode }
        await #expect(throws: Child.Problem.self) { try await relay.tool(approve(try #require(wrong))) }
        #expect(try await scene.call("state", handle)["state"] == "opened")
        let approved = try await relay.tool(approve(ownersCode))
        #expect(approved.contains("The wait of 24 h begins when a mail server accepts the"), "\(approved)")
        #expect(try await scene.call("state", strangers)["state"] == "cancelled")
        let cancel = try await scene.token("cancel", "Your login at Shop is about to change", of: 7)
        #expect(cancel != link)
        let waiting = try await scene.call("state", handle)
        #expect(waiting["state"] == "waiting" && waiting["spoken_code"] == nil, "\(waiting)")
        // The relay asks the phone about what the tool has written.
        let pending = try await phone.client.curl("POST", "/pending", [:], fields: ["Prefer": "wait=60"])
        let signed = try phone.sign("deny", what: pending, in: scene.fixture)
        _ = try await phone.client.curl(
            "POST", "/failure", ["challenge": .string(signed.challenge), "answer": .string(signed.answer)])
        #expect(try await scene.call("state", handle)["state"] == "cancelled")
        let late: JSONObject = ["secret": "hex:0102030405060708090a0b0c0d0e0f1011121314"]
        #expect(try await scene.call("finish", handle, late).status == 409)
        _ = try await DeliveredMail.inMaildir(scene.server.maildir, 8)

        try await relay.tool(["user", "recover"] + who)
        let other = try await scene.open(
            try await scene.token("recovery", "Get back into your account at Shop", of: 9))
        // A newer link does not hide the one that was opened.
        try await scene.start("ann")
        let unused = try await scene.token("recovery", "Get back into your account at Shop", of: 10)
        try await relay.tool(["user", "cancel-recovery"] + who)
        #expect(try await scene.call("state", other)["state"] == "cancelled")
        #expect(try await scene.shop.curl("POST", "/recovery", ["token": .string(unused)]).status == 404)
    }
}
