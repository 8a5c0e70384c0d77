import JSON
import Testing

@Suite struct JSONWriterTests {
    static let cases: [(JSONValue, String)] = [
        (.null, "null"), (true, "true"), (false, "false"), (.integer(.min), "-9223372036854775808"),
        (.number(0.1), "0.1"), (.number(1e21), "1e+21"), (.number(.infinity), "null"), ([], "[]"), ([:], "{}"),
        ([1, "a", [true]], "[1,\"a\",[true]]"), (["b": 1, "a": ["x": .null]], "{\"b\":1,\"a\":{\"x\":null}}"),
        (
            "\"\\/\u{8}\t\n\u{c}\r\u{0}\u{1f}\u{7f}€🙂",
            "\"\\\"\\\\/\\b\\t\\n\\f\\r\\u0000\\u001f\u{7f}€🙂\""
        ),
    ]

    @Test(arguments: cases)
    func valuesAreWritten(value: JSONValue, text: String) {
        #expect(JSONWriter.text(value) == text)
    }

    @Test func textRoundTrips() throws {
        let text = #"{"z":[1,2.5,-3],"a":{"n":null,"t":true},"s":"ä\\\"\n"}"#
        #expect(JSONWriter.text(try JSONReader.read(Array(text.utf8))) == text)
    }

    @Test(arguments: ["\"", "\\", "\u{1}", "\u{1f}", "\u{7f}", "ä", "€", "🙂", " "])
    func everyPlaceInAStringIsEscaped(special: String) throws {
        for length in 0..<20 {
            for place in 0...length {
                let text =
                    String(repeating: "a", count: place) + special + String(repeating: "b", count: length - place)
                let written = JSONWriter.write(.string(text))
                let read = try JSONReader.read(written).string
                #expect(read.map { Array($0.utf8) } == Array(text.utf8))
            }
        }
    }

    @Test func controlCharacterIsRefusedAtEveryPlace() {
        for place in 0..<20 {
            let text = "\"" + String(repeating: "a", count: place) + "\nbbbbbbbbbbbb\""
            #expect(throws: JSONError(offset: place + 1, kind: .controlCharacter)) {
                try JSONReader.read(Array(text.utf8))
            }
        }
    }
}

@Suite struct JSONObjectTests {
    @Test func membersKeepTheirOrder() {
        var object: JSONObject = ["b": 1, "a": 2]
        object["c"] = 3
        object["b"] = 4
        object.set("d", nil)
        #expect(object.members == [("b", 4), ("a", 2), ("c", 3)].map { JSONObject.Member(name: $0.0, value: $0.1) })
        object["a"] = nil
        #expect(object.names == ["b", "c"])
        #expect(object["a"] == nil)
    }

    @Test func equalObjectsIgnoreMemberOrder() {
        let object: JSONObject = ["a": 1, "b": 2]
        #expect(object == ["b": 2, "a": 1])
        #expect(object != ["a": 1])
        #expect(object != ["a": 1, "b": 3])
        #expect(object != ["a": 1, "c": 2])
    }

    @Test("Names that are equivalent in Unicode are distinct") func unicodeEquivalentNamesAreDistinct() throws {
        let value = try JSONReader.read(Array("{\"\u{212a}\":1,\"K\":2}".utf8))
        #expect(value.object?["K"] == 2)
        #expect(value.object?["\u{212a}"] == 1)
    }

    @Test func accessorsDoNotConvertTypes() {
        #expect(JSONValue.string("1").integer == nil)
        #expect(JSONValue.number(1).integer == nil)
        #expect(JSONValue.integer(1).number == 1)
        #expect(JSONValue.integer(1).bool == nil)
        #expect(JSONValue.null.string == nil)
        #expect(JSONValue.null.isNull)
        #expect(JSONValue.array([]).object == nil)
        #expect(JSONValue.object([:]).array == nil)
    }
}
