import Bytes
import Crypto
import JSON
import TestSupport
import Testing
import World

/// The page with a person's account, by the listener for browsers of a running relay.
@Suite("Accounts by the listener for browsers", .timeLimit(.minutes(5)), .mayBlock) struct AccountListenerTests {
    private static let page = "https://app.example.org"

    @Test(arguments: ["--http2", "--http1.1"]) func linkOpensTheAccountAndReports(version: String) async throws {
        let port = try FreePort()
        let relay = try await RunningRelay.start { text throws in
            try text.set("phone.listen", to: "127.0.0.1:\(port.port)")
            try text.set("phone.origin", to: "https://localhost:\(port.port)")
            try text.set("phone.certificate", to: "server.pem")
            try text.set("phone.key", to: "server.key")
            try text.set("phone.origins", to: Self.page)
        }
        let shop = try await relay.website("shop", "--answers", "website", "--account-links", "mail")
        let registered = try await shop.curl("POST", "/register", json: #"{"username": "ada"}"#)
        let token = try #require(registered["token"]?.string, "\(registered)")
        let asked = try await shop.curl("POST", "/login", json: #"{"username": "ada", "service": "Mail"}"#)
        let challenge = try #require(asked["challenge"]?.string, "\(asked)")
        let link = try Self.link(to: token, at: relay)

        let browser = relay.browser(at: port, with: shop)
        func send(_ path: String, _ body: String, from page: String = Self.page) async throws -> CurlCaller.Answer {
            try await browser.curl("POST", path, json: body, fields: ["Origin": page], arguments: [version])
        }
        let account = try await send("/account", #"{"link": "\#(link)"}"#)
        #expect(account.status == 200 && account["username"] == "ada", "\(account)")
        #expect(account.field("access-control-allow-origin") == Self.page)
        let login = account["logins"]?.array?.first?.object
        #expect(login?["challenge"]?.string == challenge && login?["can_report"] == true && login?["service"] == "Mail")
        let elsewhere = try await send("/account", #"{"link": "\#(link)"}"#, from: "https://evil.example")
        #expect(elsewhere.field("access-control-allow-origin") == nil)
        let wrong = try await send("/account", #"{"link": "\#(link)x"}"#)
        #expect(wrong.status == 401 && wrong.field("access-control-allow-origin") == Self.page, "\(wrong)")

        let report = try await send(
            "/account/report", #"{"link": "\#(link)", "challenge": "\#(challenge)"}"#)
        #expect(report.status == 204, "\(report)")
        #expect(try relay.count("SELECT count(*) FROM user WHERE state = 'frozen'") == 1)
        let phone = try await browser.curl("GET", "/account", fields: ["Origin": Self.page], arguments: [version])
        #expect(phone.status == 401 && phone.field("dpop-nonce") != nil, "\(phone)")
        for (method, path) in [("GET", "/account"), ("POST", "/account"), ("POST", "/account/report")] {
            let permitted = try await browser.curl(
                "OPTIONS", path, fields: ["Origin": Self.page, "Access-Control-Request-Method": method],
                arguments: [version])
            #expect(permitted.status == 204 && permitted.field("access-control-allow-methods") == method)
        }
    }

    /// Makes a link as a mail of the relay has it.
    private static func link(to token: String, at relay: RunningRelay) throws -> String {
        let lines = try TextFile.read(relay.file("master.key")).split(separator: "\n").filter { $0.first != "#" }
        let digits = try #require(lines.last)
        var key = Secret(
            try stride(from: 0, to: 64, by: 2).map { place in
                try #require(UInt8(digits.dropFirst(place).prefix(2), radix: 16))
            })
        for label in ["twoefay proofs", "twoefay account links"] {
            key = Secret(HMAC.sha256(key: key, Array(label.utf8)))
        }
        let now = SystemTime().now().seconds
        let claims: JSONObject = [
            "v": 1, "aud": .string("\(relay.origin)#shop"), "id_token": .string(token), "iat": .integer(now),
            "exp": .integer(now + 86_400), "jti": .string(String(repeating: "a", count: 32)),
        ]
        return JWS.sign(
            header: ["typ": "twoefay-account+jwt"], payload: JSONWriter.write(.object(claims)), secret: key)
    }
}
