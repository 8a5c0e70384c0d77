import Bytes
import Crypto
import Domain
import HTTP
import Log
import Relay
import TestSupport
import Testing
import Webhooks
import World

@testable import Couriers
@testable import Curl

@Suite(.timeLimit(.minutes(5))) struct HTTPWebhookCourierTests {
    // MARK: Delivery

    @Test func webhookArrivesAsSigned() async throws {
        try await WebhookCourierRig.with { rig in
            try await rig.serving({ request in .status(request.path == "/twoefay" ? 204 : 404) }) { website in
                let webhook = rig.webhook(website.url("/twoefay?shop=1"), body: "{\"type\":\"login.decided\"}\u{a0}")
                #expect(await rig.send(webhook) == .answered(status: 204))
                #expect(await rig.send(webhook) == .answered(status: 204))
                let requests = website.requests
                #expect(requests.map(\.method) == ["POST", "POST"] && requests.map(\.query) == ["shop=1", "shop=1"])
                for request in requests {
                    #expect(request.body == webhook.body)
                    #expect(request.fields.values("content-type") == ["application/json"])
                    #expect(request.fields.values("webhook-id") == [webhook.id.text])
                    #expect(request.fields.values("webhook-timestamp") == ["1800000000"])
                    #expect(request.fields.values("webhook-signature") == ["v1,AAAA v1,BBBB"])
                    #expect(request.fields.values("user-agent") == ["twoefay"])
                    #expect(request.certificate == nil)
                }
            }
        }
    }

    @Test func clientCertificateIsShownOnRequest() async throws {
        let name = "twoefay:website:relay"
        try await WebhookCourierRig.with(certificate: name) { rig in
            try await rig.serving({ $0.certificate?.uris == [name] ? .status(200) : .status(401) }) { website in
                #expect(await rig.send(rig.webhook(website.url("/"))) == .answered(status: 200))
            }
        }
    }

    /// A third-party server that speaks only HTTP/1.1 and requires a client certificate.
    @Test func webhookArrivesOverHTTP1WithTLS() async throws {
        let place = try TemporaryDirectory()
        let name = "twoefay:website:relay"
        try await WebhookCourierRig.with(certificate: name) { rig in
            try TextFile.write(rig.certificates.server.certificatePEM(), to: place("server.pem"))
            try TextFile.write(rig.certificates.server.keyPEM().reveal(), to: place("server.key"))
            try TextFile.write(rig.certificates.websites.certificatePEM(), to: place("ca.pem"))
            let server = try Child("python3", ["-c", Self.python], in: place.path)
            defer { server.signal(9) }
            let port = try #require(try await server.line(.output, with: "port ").split(separator: " ").last)
            let webhook = rig.webhook("https://localhost:\(port)/hook", body: "{\"n\": 7}")
            #expect(await rig.send(webhook) == .answered(status: 202))
            let heard = try await server.line(.output, with: "heard ")
            #expect(heard == "heard HTTP/1.1 /hook \(name) \(webhook.id.text) {\"n\": 7}")
            try await WebhookCourierRig.with(trusting: rig.certificates) { bare in
                // The error for a missing certificate depends on when the server checks it.
                let outcome = await bare.send(webhook)
                #expect([.unanswered(.broken), .unanswered(.unreachable)].contains(outcome), "\(outcome)")
            }
        }
    }

    private static let python = """
        import http.server, ssl
        class Hook(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'
            def do_POST(self):
                body = self.rfile.read(int(self.headers['content-length'])).decode()
                names = dict(self.connection.getpeercert()['subjectAltName'])
                print('heard', self.request_version, self.path, names['URI'], self.headers['webhook-id'], body, flush=True)
                self.send_response(202)
                self.send_header('content-length', '0')
                self.end_headers()
            def log_message(self, *_): pass
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain('server.pem', 'server.key')
        context.load_verify_locations('ca.pem')
        context.verify_mode = ssl.CERT_REQUIRED
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Hook)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        print('port', server.server_address[1], flush=True)
        server.serve_forever()
        """

    // MARK: Answers

    @Test(arguments: [200, 201, 204, 299, 302, 307, 400, 401, 404, 410, 429, 500, 503])
    func everyStatusIsAnAnswer(status: Int) async throws {
        try await WebhookCourierRig.with { rig in
            let elsewhere = Fields([Fields.Field("location", "/elsewhere")])
            try await rig.serving({ _ in .response(Response(status: status, fields: elsewhere)) }) { website in
                #expect(await rig.send(rig.webhook(website.url("/"))) == .answered(status: status))
                // The redirect is not followed.
                #expect(website.requests.map(\.path) == ["/"])
            }
        }
    }

    @Test(
        arguments: [
            ("7", .seconds(7)), ("0", .zero), ("Fri, 15 Jan 2027 08:01:40 GMT", .seconds(100)),
            ("Fri, 15 Jan 2027 07:00:00 GMT", .zero), ("later", nil), ("-1", nil),
        ] as [(String, Duration?)])
    func retryAfterIsReported(text: String, wish: Duration?) async throws {
        try await WebhookCourierRig.with { rig in
            let fields = Fields([Fields.Field("retry-after", text)])
            try await rig.serving({ _ in .response(Response(status: 503, fields: fields)) }) { website in
                #expect(await rig.send(rig.webhook(website.url("/"))) == .answered(status: 503, retryAfter: wish))
            }
        }
    }

    @Test func oversizedResponseBodyStillCounts() async throws {
        try await WebhookCourierRig.with { rig in
            let long = Response(status: 200, body: [UInt8](repeating: 0x20, count: 10_000_000))
            try await rig.serving({ _ in .response(long) }) { website in
                #expect(await rig.send(rig.webhook(website.url("/"))) == .answered(status: 200))
            }
            let gateway = try await TestGateway { _ in
                .raw("HTTP/1.1 500 No\r\ncontent-length: 10000000\r\n\r\n" + String(repeating: "x", count: 100_000))
            }
            #expect(await rig.send(rig.webhook(gateway.url + "/")) == .answered(status: 500))
        }
    }

    @Test(
        "an answer that arrives byte by byte and does not end",
        arguments: [
            ("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n" + String(repeating: "x", count: 900), true),
            ("HTTP/1.1 503 " + String(repeating: "x", count: 900), false),
        ])
    func statusCountsWhenTheBodyNeverEnds(text: String, isKnown: Bool) async throws {
        let website = try await TestGateway { _ in .slowly(text, pause: .milliseconds(5)) }
        // On a busy machine even the first byte may be late, so the deadline grows.
        for seconds in isKnown ? [1, 2, 4, 8, 16, 32, 64] : [1] {
            let outcome = try await WebhookCourierRig.with(deadline: .seconds(seconds)) { rig in
                await rig.send(rig.webhook(website.url + "/"))
            }
            if isKnown, outcome == .answered(status: 200) { return }
            #expect(outcome == .unanswered(.timeout))
        }
        #expect(!isKnown, "the status came, and counted for nothing")
    }

    @Test func hangingEndpointDelaysNoOther() async throws {
        // The silent endpoint keeps its requests until the courier closes, however slow the machine is.
        try await WebhookCourierRig.with(deadline: .seconds(3600)) { rig in
            let silent = try await TestGateway { _ in .silence }
            let open = try await TestGateway { _ in .status(200) }
            // None of them has an answer when the other website gets its webhook.
            async let hanging = rig.send((0..<150).map { _ in rig.webhook(silent.url + "/") })
            await silent.isAsked(1)
            #expect(await rig.send(rig.webhook(open.url + "/")) == .answered(status: 200))
            await silent.isAsked(64)
            #expect(await rig.send(rig.webhook(open.url + "/")) == .answered(status: 200))
            rig.courier.close()
            // The courier ended them itself, so they do not count as attempts.
            let meanings = await hanging.map(\.meaning)
            #expect(meanings == Array(repeating: .notAttempted, count: 150))
        }
    }

    @Test func missingAnswerTimesOut() async throws {
        let silent = try await TestGateway { _ in .silence }
        let outcome = try await WebhookCourierRig.with(deadline: .seconds(1)) { rig in
            await rig.send(rig.webhook(silent.url + "/"))
        }
        #expect(outcome == .unanswered(.timeout))
    }

    @Test func brokenConnectionIsReportedAsBroken() async throws {
        try await WebhookCourierRig.with { rig in
            for answer in [TestGateway.Answer.hangUp, .raw("SSH-2.0-x\r\n"), .raw("HTTP/1.1 abc\r\n\r\n")] {
                let website = try await TestGateway { _ in answer }
                #expect(await rig.send(rig.webhook(website.url + "/")) == .unanswered(.broken))
            }
            let website = try await TestGateway { _ in .status(200) }
            await website.goDown()
            #expect(await rig.send(rig.webhook(website.url + "/")) == .unanswered(.unreachable))
        }
    }

    // MARK: Allowed addresses

    @Test func untrustedCertificateGetsNoRequest() async throws {
        let strange = try TestCertificates()
        try await WebhookCourierRig.with { rig in
            try await rig.serving({ _ in .status(200) }, as: strange) { website in
                #expect(await rig.send(rig.webhook(website.url("/"))) == .unanswered(.untrusted))
                #expect(website.requests.isEmpty)
            }
            // The authority is right, and the name is wrong.
            let other = try rig.certificates.websites.issueServer(names: ["example.com"], days: 1, at: strange.now)
            try await rig.serving({ _ in .status(200) }, certificate: other) { website in
                #expect(await rig.send(rig.webhook(website.url("/"))) == .unanswered(.untrusted))
                #expect(website.requests.isEmpty)
            }
        }
    }

    @Test(
        "an internal address outside the allowed ranges",
        arguments: [
            "127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "10.1.2.3", "169.254.169.254", "[::1]", "[fd00::1]",
        ])
    func privateAddressIsRefusedWithoutARange(host: String) async throws {
        try await WebhookCourierRig.with(allowing: []) { rig in
            let website = try await TestGateway { _ in .status(200) }
            for scheme in ["https", "http"] {
                let outcome = await rig.send(rig.webhook("\(scheme)://\(host):\(website.port)/"))
                #expect(outcome == .unanswered(.refusedAddress))
            }
            #expect(website.asked.isEmpty)
        }
    }

    /// Names and redirects cannot lead out of the allowed ranges, and http: is refused elsewhere.
    @Test func plainHTTPIsAllowedOnlyInsideARange() async throws {
        let website = try await TestGateway { _ in .status(200) }
        try await WebhookCourierRig.with(allowing: ["127.0.0.0/8"]) { rig in
            #expect(await rig.send(rig.webhook(website.url + "/")) == .answered(status: 200))
            #expect(await rig.send(rig.webhook("http://localhost:\(website.port)/")) == .answered(status: 200))
        }
        try await WebhookCourierRig.with(allowing: ["127.0.0.2/32", "10.0.0.0/8"]) { rig in
            #expect(await rig.send(rig.webhook(website.url + "/")) == .unanswered(.refusedAddress))
        }
        #expect(website.asked.count == 2)
    }

    @Test(arguments: ["", "shop.example/hook", "ftp://shop.example/", "https://shop.example/#x", "https://a b/"])
    func malformedURLIsReportedAsBroken(url: String) async throws {
        try await WebhookCourierRig.with { rig in
            #expect(await rig.send(rig.webhook(url)) == .unanswered(.broken))
            #expect(rig.sink.lines.contains { $0.contains("level=error event=webhook.url") })
        }
    }

    @Test func unknownHostIsReported() async throws {
        try await WebhookCourierRig.with { rig in
            #expect(await rig.send(rig.webhook("https://nowhere.invalid/")) == .unanswered(.unknownHost))
            #expect(rig.sink.lines.contains { $0.contains("event=webhook.unanswered") })
        }
    }

    /// Every cause has a meaning. A fault of the relay never counts against the website.
    @Test func everyTransferFailureMapsToAnOutcome() {
        let table: [(TransferFailure.Cause, WebhookOutcome)] = [
            (.malformed, .unanswered(.broken)), (.insecure, .unanswered(.insecure)), (.busy, .unsent),
            (.refusedAddress, .unanswered(.refusedAddress)), (.unknownHost, .unanswered(.unknownHost)),
            (.unreachable, .unanswered(.unreachable)), (.untrusted, .unanswered(.untrusted)),
            (.deadline, .unanswered(.timeout)), (.cancelled, .unsent), (.tooLarge, .unanswered(.broken)),
            (.broken, .unanswered(.broken)),
        ]
        for (cause, outcome) in table {
            let failure = TransferFailure(cause, mayHaveArrived: true, "so")
            #expect(HTTPWebhookCourier.outcome(of: .failure(failure), at: WebhookCourierRig.now) == outcome, "\(cause)")
            let late = TransferFailure(
                cause, mayHaveArrived: true, status: 429, fields: Fields([Fields.Field("retry-after", "9")]), "so")
            #expect(
                HTTPWebhookCourier.outcome(of: .failure(late), at: WebhookCourierRig.now)
                    == .answered(status: 429, retryAfter: .seconds(9)), "\(cause)")
        }
    }
}
