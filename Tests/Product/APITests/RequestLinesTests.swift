import HTTP
import JSON
import Log
import TestSupport
import Testing

/// Every line that the relay writes because of a request names it.
struct RequestLinesTests {
    private func field(_ name: String, of line: String) -> Substring? {
        line.split(separator: " ").first { $0.hasPrefix("\(name)=") }?.dropFirst(name.count + 1)
    }

    @Test func loginAndItsPushNameTheRequest() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (token, code) = try await shop.register("bob")
        _ = try await shop.verify(try TestPhone(pushToken: "abcd"), token: token, code: code)
        _ = rig.relay.sink.drain()
        let answer = await shop.send("POST", "/login", ["username": "bob"])
        #expect(answer.status == 201)
        await rig.relay.settled()
        let lines = rig.relay.sink.lines
        for event in ["request", "challenge.asked", "push.queued", "push.accepted"] {
            let line = try #require(lines.first { ObservedSink.isOf(event, $0) }, "\(event)")
            #expect(field("request", of: line).map(String.init) == answer.fields["request-id"], "\(line)")
        }
    }

    /// The caller's trace is named, unless the field is malformed or occurs twice.
    @Test(
        arguments: [
            ([trace], "0af7651916cd43dd8448eb211c80319c"), ([trace, trace], nil), (["00-12-34-01"], nil), ([], nil),
        ] as [([String], String?)])
    func loginAndItsPushNameTheTrace(values: [String], trace: String?) async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.enrol("ada")
        _ = rig.relay.sink.drain()
        let answer = await shop.send(
            "POST", "/login", ["username": "ada"], fields: values.map { ("traceparent", $0) })
        #expect(answer.status == 201)
        await rig.relay.settled()
        let lines = rig.relay.sink.lines
        for event in ["request", "challenge.asked", "push.accepted"] {
            let line = try #require(lines.first { ObservedSink.isOf(event, $0) }, "\(event)")
            #expect(field("trace", of: line).map(String.init) == trace, "\(line)")
        }
    }

    private static let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
}
