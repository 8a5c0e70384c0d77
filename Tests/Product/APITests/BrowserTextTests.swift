import Bytes
import HTTP
import JSON
import TestSupport
import Testing

/// A User-Agent comes from a stranger's browser, so it never makes a login fail.
struct BrowserTextTests {
    private static let long = String(repeating: "x", count: 512)

    /// The User-Agent as it was sent, and as the phone shows it.
    private static let cases: [(sent: JSONValue, shown: String?, isAdjusted: Bool)] = [
        ("Firefox on Debian", "Firefox on Debian", false),
        (.string(long), long, false),
        (.null, nil, false),
        ("", nil, true),
        (" \u{3000}", nil, true),
        (.string(long + "y"), long, true),
        ("Fire\u{202e}fox", "Firefox", true),
        ("\u{200b}\u{7}\u{1b}[2J", "[2J", true),
        // Removed characters do not count.
        (.string(String(repeating: "\u{200b}", count: 600) + "Lynx"), "Lynx", true),
    ]

    @Test(arguments: cases.indices) func userAgentIsNeverRefused(index: Int) async throws {
        let (sent, shown, isAdjusted) = Self.cases[index]
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (_, phone) = try await shop.enrol("bob")
        let asked = await shop.send("POST", "/login", ["username": "bob", "user_agent": sent])
        #expect(asked.status == 201)
        let note: JSONValue? = isAdjusted ? ["user_agent": shown.map { .string($0) } ?? .null] : nil
        #expect(asked["adjusted"] == note)
        let pending = await phone.send("POST", "/pending")
        let context = pending["pending"]?.array?.first?.object?["context"]?.string.flatMap { Base64URL.decode($0) }
        #expect(try JSONReader.read(try #require(context)).object?["user_agent"]?.string == shown)
    }

    @Test func anotherTypeIsRefused() async throws {
        let shop = try await APIRig().site("shop")
        let answer = await shop.send("POST", "/login", ["username": "bob", "user_agent": 7])
        #expect(answer.status == 400)
        #expect(answer["errors"]?.array?.first?.object?["code"] == "type")
    }
}
