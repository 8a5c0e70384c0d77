import JSON
import TestSupport
import Testing

/// Invalid requests: each gets its status and names the fault.
@Suite("Bad requests", .timeLimit(.minutes(15)), .mayBlock) struct BadRequestTests {
    private struct Case {
        var path = "/register"
        let body: String
        let status: Int
        let code: String
        /// The parameter and the fault; empty if no single parameter is wrong.
        var faults: [String] = []
    }

    private static let long = String(repeating: "x", count: 65)
    private static let deep = String(repeating: "[", count: 40) + String(repeating: "]", count: 40)

    private static let cases: [Case] = [
        Case(body: "hello", status: 400, code: "malformed"),
        Case(body: "{", status: 400, code: "malformed"),
        Case(body: "[]", status: 400, code: "malformed"),
        Case(body: #"{"username":"bob"} x"#, status: 400, code: "malformed"),
        Case(body: #"{"username":"bob","username":"eve"}"#, status: 400, code: "malformed"),
        Case(body: #"{"username":\#(deep)}"#, status: 400, code: "malformed"),
        Case(body: #"{"username":"\ud800"}"#, status: 400, code: "malformed"),
        Case(body: #"{"username":1}"#, status: 400, code: "invalid", faults: ["username type"]),
        Case(body: #"{"username":null}"#, status: 400, code: "invalid", faults: ["username type"]),
        Case(body: "{}", status: 400, code: "invalid", faults: ["username missing"]),
        Case(body: #"{"username":""}"#, status: 400, code: "invalid", faults: ["username length"]),
        Case(body: #"{"username":"\#(long)"}"#, status: 400, code: "invalid", faults: ["username length"]),
        Case(body: #"{"username":"a\u0007b"}"#, status: 400, code: "invalid", faults: ["username format"]),
        Case(body: #"{"username":"b","email":"b"}"#, status: 400, code: "invalid", faults: ["email format"]),
        Case(body: #"{"username":"b","phone":"1"}"#, status: 400, code: "invalid", faults: ["phone format"]),
        Case(body: #"{"username":"b","emial":"b"}"#, status: 400, code: "invalid", faults: ["emial unknown"]),
        Case(
            body: #"{"username":7,"email":"","phone":"x","more":1}"#, status: 400, code: "invalid",
            faults: ["username type", "email length", "phone format", "more unknown"]),
        Case(path: "/login", body: "{}", status: 400, code: "invalid", faults: ["token missing"]),
        Case(
            path: "/login", body: #"{"username":"b","expires_in":59}"#, status: 400, code: "invalid",
            faults: ["expires_in format"]),
        Case(
            path: "/login", body: #"{"username":"b","details":[{"label":"a"}]}"#, status: 400, code: "invalid",
            faults: ["details[0].value missing"]),
        Case(path: "/login", body: #"{"username":"nobody"}"#, status: 404, code: "not_found"),
        Case(path: "/login", body: #"{"token":"ada"}"#, status: 400, code: "invalid", faults: ["token format"]),
        Case(
            path: "/auth", body: #"{"challenge":["x"]}"#, status: 400, code: "invalid", faults: ["challenge type"]),
        Case(
            path: "/backup", body: #"{"challenge":"x","otp":"12 456"}"#, status: 400, code: "invalid",
            faults: ["otp format"]),
        Case(
            path: "/verify", body: #"{"id_token":"x"}"#, status: 400, code: "invalid",
            faults: ["activation_code missing", "proof missing"]),
        Case(path: "/no/such/path", body: "{}", status: 404, code: "route_not_found"),
        Case(path: "/register/", body: "{}", status: 404, code: "route_not_found"),
        Case(path: "/register?x=1", body: #"{"username":"b"}"#, status: 400, code: "malformed"),
    ]

    @Test func badRequestGetsItsStatusAndNamesItsField() async throws {
        try await Fixture.run { fixture in
            let shop = try await fixture.website("shop")
            for each in Self.cases {
                let caller = each.path == "/verify" ? fixture.nobody : shop
                let answer = try await caller.curl("POST", each.path, raw: each.body)
                #expect(answer.status == each.status, "\(each.path) \(each.body): \(answer)")
                #expect(answer["code"]?.string == each.code, "\(each.path) \(each.body): \(answer)")
                #expect(answer.faults == each.faults, "\(each.path) \(each.body): \(answer)")
                #expect(answer.isProblem, "\(each.path) \(each.body): \(answer)")
                for fault in each.faults {
                    let name = String(fault.prefix { $0 != " " })
                    #expect(answer["detail"]?.string?.contains(name) == true, "\(answer)")
                }
            }
            let twice = try await shop.curl("POST", "/register", raw: #"{"email":"a","email":"b"}"#)
            #expect(twice["detail"]?.string?.contains("email") == true, "\(twice)")
            // None of the requests created a user.
            #expect(try await shop.curl("GET", "/user/b").status == 404)
            #expect(try await shop.curl("GET", "/user/bob").status == 404)
        }
    }

    @Test func invalidUTF8AndOversizedBodiesAreRefused() async throws {
        try await Fixture.run { fixture in
            let shop = try await fixture.website("shop")
            func post(_ bytes: [UInt8], type: String = "application/json") async throws -> CurlCaller.Answer {
                let path = fixture.relay.directory("body")
                try TextFile.write(bytes, to: path)
                return try await shop.curl(
                    "POST", "/register", arguments: ["--data-binary", "@\(path)", "--header", "content-type: \(type)"])
            }
            let text = Array(#"{"username":"b"}"#.utf8)
            for bad: [UInt8] in [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xc3]] {
                let answer = try await post(Array(#"{"username":""#.utf8) + bad + Array(#""}"#.utf8))
                #expect(answer.status == 400)
                #expect(answer["code"] == "malformed")
            }
            let withMark = try await post([0xef, 0xbb, 0xbf] + text)
            #expect(withMark.status == 400)
            let padding = [UInt8](repeating: UInt8(ascii: " "), count: 64 * 1024 - text.count)
            for size in [1, 64 * 1024, 4 << 20] {
                let answer = try await post(text + padding + Array(repeating: UInt8(ascii: " "), count: size))
                #expect(answer.status == 413, "\(size) too many")
                #expect(answer["code"] == "too_large")
                #expect(answer.isProblem)
            }
            for type in ["text/plain", "application/x-www-form-urlencoded"] {
                let answer = try await post(text, type: type)
                #expect(answer.status == 415)
                #expect(answer["code"] == "unsupported_type")
            }
            let fits = try await post(text + padding)
            #expect(fits.status == 201)
        }
    }

    @Test func unsupportedMethodIsRefused() async throws {
        try await Fixture.run { fixture in
            let shop = try await fixture.website("shop")
            let wrong = [
                ("GET", "/register", "POST"), ("PUT", "/login", "POST"), ("POST", "/health", "GET"),
                ("PATCH", "/user/bob/activation", "POST"), ("POST", "/challenge/x", "DELETE"),
                ("POST", "/user/bob", "DELETE, GET, PATCH"), ("OPTIONS", "/auth", "POST"), ("BREW", "/auth", "POST"),
            ]
            for (method, path, allow) in wrong {
                let answer = try await shop.curl(method, path)
                #expect(answer.status == 405, "\(method) \(path): \(answer)")
                #expect(answer["code"] == "method_not_allowed")
                #expect(answer.field("allow") == allow)
                #expect(answer.isProblem)
            }
        }
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func idempotencyKeyIsBoundToItsRequest(
        _ kind: StoreKind
    ) async throws {
        try await Fixture.run(kind) { fixture in
            let shop = try await fixture.website("shop", ["--answers", "website", "--number", "0"])
            let bank = try await fixture.website("bank", ["--answers", "website"])
            let key = ["idempotency-key": "9f0a"]
            let bob: JSONObject = ["username": "bob.twice"]
            let first = try await shop.curl("POST", "/register", bob, fields: key)
            #expect(first.status == 201)
            let shown = try await shop.curl("POST", "/register", bob, fields: key)
            #expect(shown.status == 409)
            #expect(shown["code"] == "shown_once")
            let other = try await shop.curl("POST", "/register", ["username": "eve.twice"], fields: key)
            #expect(other.status == 422)
            #expect(other["code"] == "idempotency_mismatch")
            // The key is separate for each website and route.
            #expect(try await bank.curl("POST", "/register", bob, fields: key).status == 201)

            let token: JSONObject = ["token": try #require(first["token"])]
            let asked = try await shop.curl("POST", "/login", token, fields: key)
            #expect(asked.status == 201)
            let again = try await shop.curl("POST", "/login", token, fields: key)
            #expect(again.status == 201)
            #expect(again.text == asked.text)
            #expect(again.field("idempotency-replayed") == "true")
            let unlike = try await shop.curl(
                "POST", "/login", ["token": try #require(first["token"]), "service": "x"], fields: key)
            #expect(unlike.status == 422)

            for bad in ["a b", String(repeating: "k", count: 256), "ü"] {
                let answer = try await shop.curl("POST", "/login", token, fields: ["idempotency-key": bad])
                #expect(answer.status == 400)
                #expect(answer.faults == ["Idempotency-Key format"])
            }
        }
    }
}
