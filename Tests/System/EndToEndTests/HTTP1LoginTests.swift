import Glibc
import JSON
import TestSupport
import Testing

/// HTTP/1.1 beside HTTP/2, at one port.
@Suite("HTTP/1.1", .timeLimit(.minutes(15)), .mayBlock) struct HTTP1LoginTests {
    private static let http1 = ["--http1.1"]

    @Test(arguments: [StoreKind.file, .mariadb]) func wholeLoginOverHTTP1(_ kind: StoreKind) async throws {
        try await Fixture.run(kind) { fixture in
            let shop = try await fixture.website("shop", ["--number", "0", "--answers", "website"])
            func post(_ path: String, _ body: JSONObject) async throws -> CurlCaller.Answer {
                try await shop.curl("POST", path, body, arguments: Self.http1)
            }
            let registered = try await post("/register", ["username": "bob"])
            #expect(registered.status == 201)
            let token = try #require(registered["token"]?.string)
            let about: JSONObject = ["token": .string(token)]
            #expect(try await post("/verify", ["id_token": .string(token), "dev_token": "aabbccdd"]).status == 200)
            #expect(try await post("/login", about).status == 201)
            let held = try shop.begin("POST", "/auth", about, fields: ["Prefer": "wait=60"], arguments: Self.http1)
            try await fixture.relay.logged("event=request.held", number: 1)
            // The answer comes over HTTP/2.
            #expect(try await shop.curl("POST", "/success", about).status == 200)
            let result = try await shop.end(held)
            #expect(result["login"] == "success")
            #expect(result.field("preference-applied") == "wait=60")
            #expect(try await shop.curl("GET", "/user/bob", arguments: Self.http1).status == 200)
            #expect(try await shop.curl("DELETE", "/user/bob", arguments: Self.http1).status == 204)
        }
    }

    /// Faults below the requests are problem documents, too.
    @Test func faultsAreProblemDocuments() async throws {
        try await Fixture.run { fixture in
            let faults: [(String, Int, String)] = [
                ("Host: other.example.com", 421, "misdirected"), ("Expect: more", 417, "expectation_failed"),
                ("Content-Length: +1", 400, "malformed"), ("Upgrade: h2c", 400, "malformed"),
                ("A: \(String(repeating: "b", count: 40_000))", 431, "head_too_large"),
            ]
            for (field, status, code) in faults {
                let answer = try await fixture.nobody.curl(
                    "GET", "/health", arguments: Self.http1 + ["--header", field])
                #expect(answer.status == status, "\(field.prefix(20))")
                #expect(answer.isProblem)
                #expect(answer["code"]?.string == code)
                #expect(answer.field("connection") == "close")
            }
        }
    }

    @Test func settingTurnsHTTP1Off() async throws {
        try await Fixture.run { text in
            try text.set("http1", to: "off")
        } _: { fixture in
            for arguments in [["--http1.1"], ["--no-alpn", "--http1.1"]] {
                let status = try await fixture.nobody.refusal("GET", "/health", arguments: arguments)
                #expect(APIClient.broken.contains(status), "curl ended with \(status)")
            }
        }
    }

    @Test func reloadTurnsHTTP1OffAndOn() async throws {
        try await Fixture.run { fixture in
            for (number, value) in ["off", "on"].enumerated() {
                try fixture.relay.change { text in try text.set("http1", to: value) }
                fixture.relay.signal(SIGHUP)
                try await fixture.relay.logged("event=daemon.reloaded", number: number + 1)
                let status = try await fixture.nobody.refusal("GET", "/health", arguments: Self.http1)
                #expect(value == "on" ? status == 0 : APIClient.broken.contains(status), "\(value): \(status)")
            }
        }
    }
}
