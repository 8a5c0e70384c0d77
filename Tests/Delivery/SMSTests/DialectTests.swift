import Bytes
import Curl
import TestSupport
import Testing

@testable import SMS

/// The requests to each kind of gateway, and the meaning of its answers, over a real connection.
@Suite struct DialectTests {
    private static let secret = Secret(utf8: "p&ss wörd")

    private func kannel(_ gateway: TestGateway, _ method: Kannel.Method = .get) throws -> Kannel {
        Kannel(
            url: try #require(TransferURL(gateway.url + "/cgi-bin/sendsms")), method: method, username: "tw",
            password: Self.secret, from: "Shop", smsc: "fast")
    }

    private func twilio(_ gateway: TestGateway, _ sender: Twilio.Sender = .from("+12025550199")) throws -> Twilio {
        let url = try #require(TransferURL(gateway.url))
        return try #require(Twilio(at: url, account: "AC1", token: Self.secret, sender: sender))
    }

    @Test(arguments: Kannel.Method.allCases) func kannelRequestIsFormed(_ method: Kannel.Method) async throws {
        let gateway = try await TestGateway { _ in .status(202, "0: Accepted for delivery") }
        try await Fixture.with { fixture in
            let one = try kannel(gateway, method)
            #expect(await fixture.send(message(1, "Ihr Code für Köln: 1&2"), by: one) == .accepted)
            #expect(await fixture.send(message(2, "Код 123456"), by: one) == .accepted)
        }
        for (asked, text) in zip(gateway.asked, ["Ihr Code für Köln: 1&2", "Код 123456"]) {
            #expect(asked.method == method.rawValue && asked.path == "/cgi-bin/sendsms")
            let said = { (name: String) in method == .get ? asked.query[name] : asked.fields["x-kannel-" + name] }
            #expect(said("username") == "tw" && said("password") == "p&ss wörd")
            #expect(said("to") == "+4915112345678" && said("from") == "Shop" && said("smsc") == "fast")
            #expect(said("coding") == (text.hasPrefix("Код") ? "2" : nil))
            #expect(said("dlr-mask") == nil)
            #expect((method == .get ? asked.query["text"] : asked.body) == text)
            let charset = method == .get ? asked.query["charset"] : asked.fields["content-type"]
            #expect(charset?.hasSuffix("UTF-8") == true)
        }
        #expect(
            gateway.asked.map { $0.target.contains("binfo=") || $0.fields["x-kannel-binfo"] != nil } == [true, true])
    }

    @Test(
        "kannel's answers",
        arguments: [
            (202, "3: Queued for later delivery", GatewayOutcome.Word.accepted), (200, "0: Accepted", .accepted),
            (200, "Sent.", .accepted), (200, "<html>Log in to the WiFi</html>", .ambiguous),
            (403, "Authorization failed for sendsms", .fault), (403, "Not routable. Do not try again.", .unsuited),
            (404, "", .fault), (503, "Temporal failure, try again later.", .busy),
            (400, "Number(s) has/have been denied by white- and/or black-lists.", .unsuited), (500, "", .ambiguous),
        ])
    func kannelAnswersMapToOutcomes(_ status: Int, _ body: String, _ word: GatewayOutcome.Word) async throws {
        let gateway = try await TestGateway { _ in .status(status, body) }
        try await Fixture.with { fixture in
            let outcome = try await fixture.send(message(), by: kannel(gateway))
            #expect(outcome.word == word)
        }
    }

    @Test func twilioRequestIsFormed() async throws {
        let gateway = try await TestGateway { _ in .status(201, #"{"sid": "SM1", "status": "queued"}"#) }
        try await Fixture.with { fixture in
            let by = try twilio(gateway)
            #expect(await fixture.send(message(1, "a+b & ü"), by: by) == .accepted)
            let byService = try twilio(gateway, .service("MG1"))
            #expect(await fixture.send(message(2), by: byService) == .accepted)
        }
        let asked = try #require(gateway.asked.first)
        #expect(asked.method == "POST" && asked.target == "/2010-04-01/Accounts/AC1/Messages.json")
        #expect(asked.fields["content-type"] == "application/x-www-form-urlencoded")
        // printf 'AC1:p&ss wörd' | base64
        #expect(asked.fields["authorization"] == "Basic QUMxOnAmc3Mgd8O2cmQ=")
        #expect(asked.form == ["To": "+4915112345678", "From": "+12025550199", "Body": "a+b & ü"])
        #expect(gateway.asked.last?.form["MessagingServiceSid"] == "MG1" && gateway.asked.last?.form["From"] == nil)
    }

    @Test(
        "twilio's answers",
        arguments: [
            (201, #"{"sid": "SM1"}"#, GatewayOutcome.Word.accepted), (200, "<html>", .ambiguous),
            (400, #"{"code": 21211, "message": "The 'To' number +4915112345678 is not valid"}"#, .refused),
            (400, #"{"code": 21614}"#, .refused), (400, #"{"code": 21610}"#, .refused),
            (400, #"{"code": 21408}"#, .unsuited), (400, #"{"code": 21606}"#, .fault),
            (401, #"{"code": 20003}"#, .fault), (429, #"{"code": 20429}"#, .busy), (400, "garbage", .unsuited),
            (404, #"{"code": 20404}"#, .fault), (503, #"{"code": 20503}"#, .busy), (502, "", .ambiguous),
        ])
    func twilioAnswersMapToOutcomes(_ status: Int, _ body: String, _ word: GatewayOutcome.Word) async throws {
        let gateway = try await TestGateway { _ in .status(status, body) }
        try await Fixture.with { fixture in
            let outcome = try await fixture.send(message(), by: twilio(gateway))
            #expect(outcome.word == word)
            // The gateway's text may repeat the number.
            #expect(outcome.reason?.contains("4915112345678") != true)
        }
    }

    @Test func genericHTTPRequestIsFormed() async throws {
        let gateway = try await TestGateway { _ in .status(200, "OK 1") }
        var one = GenericHTTPDialect(
            method: "PUT", url: try RequestTemplate(gateway.url + "/{number}?id={id}"),
            fields: [.init("X-Key", try RequestTemplate("key {password}"))], contentType: "application/json",
            escaping: .json, body: try RequestTemplate(#"{"to": "{to}", "text": "{text}", "from": "{from}"}"#),
            username: "me", password: Secret(utf8: "s3cret"), from: "\"Shop\"")
        try await Fixture.with { fixture in
            #expect(await fixture.send(message(7, "a \"b\"\n{to}"), by: one) == .accepted)
            one.authorizes = true
            one.body = nil
            one.method = "GET"
            #expect(await fixture.send(message(8), by: one) == .accepted)
        }
        let asked = try #require(gateway.asked.first)
        #expect(asked.method == "PUT" && asked.target == "/4915112345678?id=" + message(7).id)
        #expect(asked.fields["x-key"] == "key s3cret" && asked.fields["content-type"] == "application/json")
        #expect(asked.body == #"{"to": "+4915112345678", "text": "a \"b\"\n{to}", "from": "\"Shop\""}"#)
        #expect(asked.fields["authorization"] == nil)
        // printf 'me:s3cret' | base64
        #expect(gateway.asked.last?.fields["authorization"] == "Basic bWU6czNjcmV0")
    }

    @Test func genericHTTPAnswersFollowTheRules() async throws {
        let gateway = try await TestGateway { _ in .status(200) }
        var rule = GenericHTTPDialect.Rule()
        rule.accepted = [200, 302]
        rule.acceptedText = "OK"
        rule.refused = [422]
        rule.refusedText = "no such number"
        rule.busy = [509]
        let one = GenericHTTPDialect(method: "GET", url: try RequestTemplate(gateway.url), rule: rule)
        let table: [(Int, String, GatewayOutcome.Word)] = [
            (200, "OK", .accepted), (302, "OK", .accepted), (200, "ERROR 5", .unsuited), (201, "OK", .ambiguous),
            (422, "", .refused), (200, "no such number", .refused), (509, "", .busy), (400, "OK", .unsuited),
            (403, "", .fault), (301, "", .fault),
        ]
        try await Fixture.with { fixture in
            for (status, body, word) in table {
                gateway.answer { _ in .status(status, body) }
                #expect(await fixture.send(message(), by: one).word == word, "\(status) \(body)")
            }
            gateway.answer { _ in .status(429, fields: ["Retry-After: 7"]) }
            #expect(await fixture.send(message(), by: one) == .busy(.seconds(7), "429"))
        }
    }
}
