import Crypto
import Glibc
import JSON
import TestSupport
import Testing

/// The listener for browsers of a running relay.
@Suite("The listener for browsers", .timeLimit(.minutes(5)), .mayBlock) struct BrowserListenerTests {
    private static func start(_ port: FreePort) async throws -> RunningRelay {
        try await RunningRelay.start { text throws in
            try text.set("phone.listen", to: "127.0.0.1:\(port.port)")
            try text.set("phone.origin", to: "https://localhost:\(port.port)")
            try text.set("phone.certificate", to: "server.pem")
            try text.set("phone.key", to: "server.key")
            try text.set("phone.origins", to: "https://app.example.org")
        }
    }

    @Test(arguments: ["--http2", "--http1.1"]) func routesOfPhonesAreThere(version: String) async throws {
        let port = try FreePort()
        let relay = try await Self.start(port)
        let shop = try await relay.website("shop")
        let registered = try await shop.curl("POST", "/register", json: #"{"username": "ada"}"#)
        let uri = registered["activation"]?.object?["uri"]?.string
        #expect(uri?.contains("&at=https%3A%2F%2Flocalhost%3A\(port.port)") == true, "\(registered)")
        let link = registered["activation"]?.object?["link"]?.string
        let parameters = uri.map { $0.dropFirst("twoefay://enrol?".count) } ?? ""
        #expect(link == "https://localhost:\(port.port)/phone/#\(parameters)", "\(registered)")

        // The website's certificate is there, and nobody asks for it.
        let browser = relay.browser(at: port, with: shop)
        let pending = try await browser.curl(
            "POST", "/pending", json: "{}", fields: ["Origin": "https://app.example.org"], arguments: [version])
        #expect(pending.status == 401 && pending.field("dpop-nonce") != nil, "\(pending)")
        #expect(pending.field("access-control-allow-origin") == "https://app.example.org")
        let page = try await browser.curl("GET", "/phone/", arguments: [version])
        #expect(page.status == 200 && page.text.contains("<script type=\"module\""), "\(page)")
        let login = try await browser.curl("POST", "/login", json: #"{"username": "ada"}"#, arguments: [version])
        #expect(login.status == 404 && login["code"] == "route_not_found", "\(login)")
        let asked = try await browser.curl(
            "OPTIONS", "/success",
            fields: ["Origin": "https://app.example.org", "Access-Control-Request-Method": "POST"],
            arguments: [version])
        #expect(asked.status == 204 && asked.field("access-control-allow-methods") == "POST", "\(asked)")
    }

    /// A browser that is asked for a certificate asks its person.
    @Test func noCertificateIsRequested() async throws {
        let port = try FreePort()
        let relay = try await Self.start(port)
        let names = "Acceptable client certificate CA names"
        #expect(try await Self.handshake(relay.port).contains(names))
        #expect(try await !Self.handshake(port.port).contains(names))
    }

    @Test func reloadTakesANewCertificate() async throws {
        let port = try FreePort()
        let relay = try await Self.start(port)
        let before = try await Self.handshake(port.port)
        let renewed = String(decoding: try relay.renewCertificate().pem(), as: UTF8.self)
        #expect(!before.contains(renewed))
        relay.signal(SIGHUP)
        try await relay.logged("event=daemon.reloaded")
        #expect(try await Self.handshake(port.port).contains(renewed))
    }

    /// Returns what OpenSSL tells of a handshake.
    private static func handshake(_ port: UInt16) async throws -> String {
        try await Child.run("openssl", ["s_client", "-connect", "127.0.0.1:\(port)", "-showcerts"]).output
    }
}
