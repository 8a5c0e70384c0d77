import HTTP
import Testing

@testable import twoefay

/// The header fields that pass the sidecar.
@Suite struct PassedFieldsTests {
    private static func fields(_ lines: String...) -> Fields {
        Fields(
            lines.map { line in
                let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
                return Fields.Field(parts[0], parts[1])
            })
    }

    @Test func fieldsOfTheConnectionAreDropped() {
        let request = Self.fields(
            "host:localhost", "connection:close, X-Own ,te", "x-own:1", "te:trailers", "keep-alive:5",
            "transfer-encoding:chunked", "upgrade:h2c", "proxy-authorization:Basic x", "trailer:x",
            "content-length:3", "expect:100-continue", "authorization:Bearer x", "prefer:wait=60",
            "idempotency-key:a", "accept-language:de", "accept-language:en", "x-other:2")
        let passed = Self.fields(
            "prefer:wait=60", "idempotency-key:a", "accept-language:de", "accept-language:en", "x-other:2")
        #expect(PassedFields.ofRequest(request) == passed)
    }

    @Test func fieldsOfTheAnswerAreKept() {
        let answer = Self.fields(
            "content-type:application/json", "content-length:2", "cache-control:no-store", "request-id:1",
            "retry-after:3", "connection:close", "www-authenticate:x", "vary:a", "vary:b")
        let passed = Self.fields(
            "content-type:application/json", "cache-control:no-store", "request-id:1", "retry-after:3",
            "www-authenticate:x", "vary:a", "vary:b")
        #expect(PassedFields.ofResponse(answer) == passed)
    }

    @Test func invalidFieldsAreFaults() {
        for line in [
            "x y:1", "x:a\nb", "x:ö", "x:\u{7f}", "x:\0", "content-length:", "content-length:1 ", "content-length:-1",
        ] {
            #expect(PassedFields.fault(Self.fields(line)) != nil, "\(line)")
        }
        #expect(PassedFields.fault(Self.fields("content-length:10", "x:a\tb", "host:localhost")) == nil)
    }

    /// The relay would not see its key, though the caller counts on it.
    @Test func connectionNamesNoOtherField() {
        #expect(PassedFields.fault(Self.fields("connection:close, Idempotency-Key", "idempotency-key:k")) != nil)
        #expect(PassedFields.fault(Self.fields("connection:keep-alive, TE", "connection:close")) == nil)
    }

    /// The relay charges the path to the connection, too.
    @Test func targetCountsWithTheFields() {
        let target = "/user/" + String(repeating: "x", count: PassedFields.longest)
        #expect(PassedFields.fault(Self.fields("x:1"), target: target) != nil)
        #expect(PassedFields.fault(Self.fields("x:1"), target: "/user/ada") == nil)
    }
}
