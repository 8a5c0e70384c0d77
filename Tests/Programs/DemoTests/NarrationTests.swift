import JSON
import Testing

@testable import Demo

struct NarrationTests {
    @Test func linesAreWrappedWithoutLoss() {
        let words = Array(repeating: "word", count: 60).joined(separator: " ")
        let lines = Narration.wrapped(words)
        #expect(lines.count > 1 && lines.allSatisfy { $0.count <= 104 })
        #expect(lines.joined(separator: " ") == words)

        let body = Array(repeating: "\"name\":\"value\"", count: 20).joined(separator: ",")
        let pieces = Narration.wrapped(body, at: ",", indent: 24)
        #expect(pieces.count > 1 && pieces.dropLast().allSatisfy { $0.hasSuffix(",") && $0.count <= 81 })
        #expect(pieces.joined() == body)

        let one = String(repeating: "x", count: 200)
        #expect(Narration.wrapped(one) == [one])
        #expect(Narration.wrapped("") == [])
    }

    @Test func longTextsAreTruncatedAtEveryDepth() {
        let long = String(repeating: "a", count: 37)
        let cut = JSONValue.string(String(repeating: "a", count: 24) + "…")
        let value: JSONValue = ["short": "b", "list": [.string(long)], "object": ["x": .string(long)], "n": 1]
        #expect(value.shortened == ["short": "b", "list": [cut], "object": ["x": cut], "n": 1])
    }

    @Test func timesAreWrittenInMilliseconds() {
        #expect(Duration.milliseconds(1_007).inSeconds == "1.007 s")
        #expect(Duration.milliseconds(60_250).inSeconds == "60.250 s")
        #expect(Duration.milliseconds(-5).inSeconds == "0.000 s")
    }
}
