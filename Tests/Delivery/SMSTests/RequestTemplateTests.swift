import Testing

@testable import SMS

@Suite struct RequestTemplateTests {
    private func filled(
        _ text: String, _ escaping: RequestTemplate.Escaping, _ value: String = "a b&c=\"<ü>'\\\n"
    ) throws -> String { try RequestTemplate(text).filled(escaping) { _ in value } }

    @Test func valuesAreEscapedForTheirContext() throws {
        #expect(
            try filled("https://x/?t={text}&u=1", .url) == "https://x/?t=a%20b%26c%3D%22%3C%C3%BC%3E%27%5C%0A&u=1")
        #expect(try filled("t={text}", .form) == "t=a+b%26c%3D%22%3C%C3%BC%3E%27%5C%0A")
        #expect(try filled("{\"t\":\"{text}\"}", .json) == "{\"t\":\"a b&c=\\\"<ü>'\\\\\\n\"}")
        #expect(try filled("<t>{text}</t>", .xml) == "<t>a b&amp;c=&quot;&lt;ü&gt;&#39;\\\n</t>")
        #expect(try filled("{text}", .none) == "a b&c=\"<ü>'\\\n")
    }

    @Test func valueIsNotExpanded() throws {
        #expect(
            try RequestTemplate("{from}: {text}").filled(.none) { $0 == .from ? "{text}" : "{to}" } == "{text}: {to}")
    }

    @Test func otherBracesAreLiteral() throws {
        for text in ["{}", "{\"to\": 1}", "{ to }", "{to", "to}", "{{}}", "{1}", "{\"a\":{\"b\":[]}}"] {
            let template = try RequestTemplate(text)
            #expect(template.gaps.isEmpty && template.filled(.json) { _ in "x" } == text, "\(text)")
        }
        #expect(try filled("{{to}}", .none, "x") == "{x}")
    }

    @Test func unknownPlaceholderIsRefused() {
        for text in ["{tex}", "{To}", "x={phone}&y"] {
            #expect(throws: RequestTemplate.Malformed.self, "\(text)") { try RequestTemplate(text) }
        }
    }

    @Test func bodyEscapingFollowsTheContentType() {
        let types: [(String, RequestTemplate.Escaping?)] = [
            ("application/json", .json), ("Application/JSON; charset=utf-8", .json), ("application/vnd.x+json", .json),
            ("application/x-www-form-urlencoded", .form), ("text/xml", .xml), ("application/soap+xml", .xml),
            ("text/plain;charset=UTF-8", RequestTemplate.Escaping.none), ("application/octet-stream", nil), ("", nil),
        ]
        for (type, escaping) in types { #expect(RequestTemplate.Escaping(contentType: type) == escaping, "\(type)") }
    }
}
