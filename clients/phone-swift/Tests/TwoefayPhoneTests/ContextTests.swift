import Foundation
import Testing
import TwoefayPhone

struct ContextTests {
    private func context(_ change: (inout JSONObject) -> Void = { _ in }) throws -> Context {
        var object = try ProtocolPage("device-protocol.md").members("context")
        change(&object)
        return try Context(object.bytes)
    }

    @Test func optionalMembersMayBeMissing() throws {
        let context = try context {
            for name in ["service", "action", "details", "ip", "place", "user_agent", "request"] { $0[name] = nil }
            $0["later"] = "x"
        }
        #expect(context.details.isEmpty && context.request == nil && context.ip == nil)
    }

    @Test(arguments: ["v", "website", "display_name", "username", "number_digits", "created_at", "expires_at"])
    func neededMembers(name: String) throws {
        #expect(throws: Context.Refused.self) { try context { $0[name] = nil } }
        #expect(throws: Context.Refused.self) { try context { $0[name] = true } }
    }

    @Test func laterVersionIsRefused() throws {
        #expect(throws: Context.Refused.self) { try context { $0["v"] = 2 } }
        let twice = Array(#"{"v":1,"v":1}"#.utf8)
        #expect(throws: Context.Refused.self) { try Context(twice) }
        #expect(throws: Context.Refused.self) { try Context(Array("[]".utf8)) }
    }

    /// The first and last character of each range of the page.
    @Test func invisibleCharactersAreRefused() throws {
        let page = try ProtocolPage("device-protocol.md").text
        let start = try #require(page.range(of: "an invisible character:\n"))
        let list = page[start.upperBound...].prefix { $0 != "." }
        var count = 0
        for range in list.split(whereSeparator: { $0 == "," || $0.isWhitespace }) {
            let ends = range.dropFirst(range.hasPrefix("U+") ? 2 : 0).split(separator: "–").compactMap {
                UInt32($0, radix: 16)
            }
            for value in ends {
                let scalar = try #require(Unicode.Scalar(value))
                count += 1
                for name in ["username", "action", "ip"] {
                    let text = JSONValue.string("a\(Character(scalar))b")
                    #expect(throws: Context.Refused.self, "\(value)") { try context { $0[name] = text } }
                }
                #expect(throws: Context.Refused.self) {
                    try context { $0["details"] = .array([.object(["label": "a", "value": .string(String(scalar))])]) }
                }
            }
        }
        #expect(count == 32)
        #expect(try context { $0["username"] = "Zoë\u{a0}Ω 漢字 😀" }.username.hasPrefix("Zoë"))
    }
}
