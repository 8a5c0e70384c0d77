import JSON
import Testing
import World

@testable import Phone

struct ShownContextTests {
    @Test func contextShowsEveryField() throws {
        let context = try ShownContext(Listed().bytes)
        #expect(context.displayName == "The Shop" && context.website == "shop")
        #expect(context.request == "r-1" && context.numberDigits == 2)
        #expect(
            context.lines.map { "\($0.label): \($0.value)" } == [
                "user: alice", "service: members", "action: pay", "amount: 12.00 EUR", "place: Berlin, DE",
                "ip: 192.0.2.7", "with: Firefox", "requested at: 2026-11-21T10:00:00.000Z",
            ])
    }

    @Test func unknownMembersAreIgnored() throws {
        let listed = Listed { $0["later"] = ["a": [1, 2]] }
        #expect(try ShownContext(listed.bytes).username == "alice")
    }

    @Test func absentMembersAreAccepted() throws {
        let listed = Listed { context in
            for name in ["service", "action", "details", "ip", "place", "user_agent", "request"] {
                context[name] = nil
            }
            context["number_digits"] = 0
        }
        let context = try ShownContext(listed.bytes)
        #expect(context.lines.map(\.label) == ["user", "requested at"])
        #expect(context.request == nil)
    }

    /// Values that cannot be shown exactly, so that the person cannot agree to them. The demo's
    /// phone has to refuse the same.
    static let faults: [(name: String, value: JSONValue)] = [
        ("v", JSONValue.integer(2)), ("v", .string("1")), ("v", .null), ("website", .null), ("username", .integer(1)),
        ("username", .string("ali\u{202e}ce")), ("service", .string("a\u{1b}[2Jb")), ("place", .string("a\nb")),
        ("details", .string("amount")), ("details", .array([["label": "amount"]])),
        ("details", .array([["label": "amount", "value": "1\u{2066}2"]])), ("username", .string("ali\u{200b}ce")),
        ("service", .string("a\u{e0001}")), ("number_digits", .string("2")),
        ("number_digits", .integer(-1)), ("created_at", .string("yesterday")), ("expires_at", .null),
    ]

    @Test(arguments: faults)
    func malformedContextIsRefused(name: String, value: JSONValue) {
        let listed = Listed { $0[name] = value }
        #expect(throws: ShownContext.Malformed.self) { try ShownContext(listed.bytes) }
    }

    static let noObjects = ["", "[]", "{\"v\":1,\"v\":1}", "{\"v\":1"]

    @Test(arguments: noObjects) func nonObjectContextIsRefused(text: String) {
        #expect(throws: ShownContext.Malformed.self) { try ShownContext(Array(text.utf8)) }
    }

    static let pieces = [
        JSONValue.null, [:], ["challenge": ""],
        ["challenge": "c1", "context": "AA", "expires_at": "2026-11-21T10:05:00.000Z"],
        ["challenge": "c1", "nonce": "n", "context": "A A", "expires_at": "2026-11-21T10:05:00.000Z"],
        ["challenge": "c1", "nonce": "n", "context": "AA", "expires_at": "soon"],
    ]

    @Test(arguments: pieces)
    func incompleteContextIsRefused(value: JSONValue) {
        #expect(throws: ChallengePrompt.Refused.self) {
            try ChallengePrompt(value, website: "shop", now: Timestamp(milliseconds: 0))
        }
    }
}
