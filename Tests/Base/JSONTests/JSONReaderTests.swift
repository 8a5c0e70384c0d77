import JSON
import Testing

private func read(_ text: String) throws(JSONError) -> JSONValue { try JSONReader.read(Array(text.utf8)) }

private func failure(_ bytes: [UInt8], limits: JSONLimits = JSONLimits()) -> JSONError? {
    do {
        _ = try JSONReader.read(bytes, limits: limits)
        return nil
    } catch {
        return error
    }
}

private func failure(_ text: String) -> JSONError? { failure(Array(text.utf8)) }

@Suite struct JSONReaderTests {
    @Test("The sample object of RFC 8259 §13") func rfc8259SampleObjectIsRead() throws {
        let value = try read(
            """
            {
              "Image": {
                  "Width":  800,
                  "Height": 600,
                  "Title":  "View from 15th Floor",
                  "Thumbnail": {
                      "Url":    "http://www.example.com/image/481989943",
                      "Height": 125,
                      "Width":  100
                  },
                  "Animated" : false,
                  "IDs": [116, 943, 234, 38793]
                }
            }
            """)
        let image = try #require(value.object?["Image"]?.object)
        #expect(image.names == ["Width", "Height", "Title", "Thumbnail", "Animated", "IDs"])
        #expect(image["Width"]?.integer == 800)
        #expect(image["Animated"]?.bool == false)
        #expect(image["IDs"] == [116, 943, 234, 38793])
        #expect(image["Thumbnail"]?.object?["Url"]?.string == "http://www.example.com/image/481989943")
    }

    @Test("The sample array of RFC 8259 §13") func rfc8259SampleArrayIsRead() throws {
        let value = try read(
            """
            [ { "precision": "zip", "Latitude":  37.7668, "Longitude": -122.3959, "Address": "",
                "City": "SAN FRANCISCO", "State": "CA", "Zip": "94107", "Country": "US" },
              { "precision": "zip", "Latitude":  37.371991, "Longitude": -122.026020, "Address": "",
                "City": "SUNNYVALE", "State": "CA", "Zip": "94085", "Country": "US" } ]
            """)
        let places = try #require(value.array)
        #expect(places.count == 2)
        #expect(places[0].object?["Latitude"]?.number == 37.7668)
        #expect(places[1].object?["Longitude"]?.number == -122.02602)
    }

    @Test("The single values of RFC 8259 §13") func scalarsAreRead() throws {
        #expect(try read("\"Hello world!\"") == "Hello world!")
        #expect(try read("42") == 42)
        #expect(try read("true") == true)
        #expect(try read(" null\r\n\t") == .null)
        #expect(try read("{}") == .object([:]))
        #expect(try read("[ ]") == [])
    }

    @Test(arguments: [
        ("0", JSONValue.integer(0)), ("-0", .integer(0)), ("9007199254740993", .integer(9_007_199_254_740_993)),
        ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)), ("1.0", .number(1)),
        ("-1.5e2", .number(-150)), ("1E+2", .number(100)), ("5e-324", .number(.leastNonzeroMagnitude)),
    ])
    func numbersAreRead(text: String, value: JSONValue) throws {
        #expect(try read(text) == value)
    }

    @Test(arguments: [
        ("\"\\u20ac\\/\\\"\\\\\\b\\f\\n\\r\\t\"", "€/\"\\\u{8}\u{c}\n\r\t"), ("\"\\uD834\\uDD1E\"", "\u{1D11E}"),
        ("\"a\\u0041b\"", "aAb"), ("\"Grüße 🙂\"", "Grüße 🙂"), ("\"\"", ""), ("\"\u{7f}\"", "\u{7f}"),
    ])
    func stringsAreRead(text: String, value: String) throws {
        #expect(try read(text).string == value)
    }

    @Test(arguments: [
        ("", JSONError(offset: 0, kind: .incomplete)),
        ("  ", JSONError(offset: 2, kind: .incomplete)),
        ("{", JSONError(offset: 1, kind: .incomplete)),
        ("[1", JSONError(offset: 2, kind: .incomplete)),
        ("\"abc", JSONError(offset: 4, kind: .incomplete)),
        ("\"\\", JSONError(offset: 2, kind: .incomplete)),
        ("\"\\u12", JSONError(offset: 5, kind: .incomplete)),
        ("\"\\ud800", JSONError(offset: 7, kind: .incomplete)),
        ("tru", JSONError(offset: 3, kind: .incomplete)),
        ("-", JSONError(offset: 1, kind: .incomplete)),
        ("1.", JSONError(offset: 2, kind: .incomplete)),
        ("1e+", JSONError(offset: 3, kind: .incomplete)),
        ("truE", JSONError(offset: 3, kind: .unexpectedByte(0x45))),
        ("{\"a\":1,}", JSONError(offset: 7, kind: .unexpectedByte(0x7d))),
        ("[1,]", JSONError(offset: 3, kind: .unexpectedByte(0x5d))),
        ("[1 2]", JSONError(offset: 3, kind: .unexpectedByte(0x32))),
        ("{a:1}", JSONError(offset: 1, kind: .unexpectedByte(0x61))),
        ("{\"a\" 1}", JSONError(offset: 5, kind: .unexpectedByte(0x31))),
        ("'a'", JSONError(offset: 0, kind: .unexpectedByte(0x27))),
        ("NaN", JSONError(offset: 0, kind: .unexpectedByte(0x4e))),
        ("+1", JSONError(offset: 0, kind: .unexpectedByte(0x2b))),
        ("\u{feff}1", JSONError(offset: 0, kind: .unexpectedByte(0xef))),
        ("1 1", JSONError(offset: 2, kind: .trailingBytes)),
        ("{} x", JSONError(offset: 3, kind: .trailingBytes)),
        ("1\0", JSONError(offset: 1, kind: .trailingBytes)),
        ("01", JSONError(offset: 0, kind: .invalidNumber)),
        ("-01", JSONError(offset: 1, kind: .invalidNumber)),
        ("1.e2", JSONError(offset: 2, kind: .invalidNumber)),
        ("-x", JSONError(offset: 1, kind: .invalidNumber)),
        ("[9223372036854775808]", JSONError(offset: 1, kind: .numberOutOfRange)),
        ("-9223372036854775809", JSONError(offset: 0, kind: .numberOutOfRange)),
        ("99999999999999999999999999999999999999999", JSONError(offset: 0, kind: .numberOutOfRange)),
        ("1e400", JSONError(offset: 0, kind: .numberOutOfRange)),
        ("0." + String(repeating: "1", count: 70), JSONError(offset: 0, kind: .numberOutOfRange)),
        ("{\"a\":1,\"b\":2,\"a\":3}", JSONError(offset: 13, kind: .duplicateName("a"))),
        ("{\"a\":1,\"\\u0061\":3}", JSONError(offset: 7, kind: .duplicateName("a"))),
        ("\"a\nb\"", JSONError(offset: 2, kind: .controlCharacter)),
        ("\"\\na\u{1}\"", JSONError(offset: 4, kind: .controlCharacter)),
        ("\"\0\"", JSONError(offset: 1, kind: .controlCharacter)),
        ("\"\\x41\"", JSONError(offset: 1, kind: .invalidEscape)),
        ("\"\\u00g0\"", JSONError(offset: 5, kind: .invalidEscape)),
        ("\"\\u0000\"", JSONError(offset: 1, kind: .nul)),
        ("\"\\ud834\"", JSONError(offset: 1, kind: .loneSurrogate)),
        ("\"\\ud834 x\"", JSONError(offset: 1, kind: .loneSurrogate)),
        ("\"\\ud834\\ud834\"", JSONError(offset: 1, kind: .loneSurrogate)),
        ("\"\\udd1e\"", JSONError(offset: 1, kind: .loneSurrogate)),
        ("\"\\uffff\"", JSONError(offset: 1, kind: .nonCharacter)),
        ("\"x\\ud83f\\udffe\"", JSONError(offset: 2, kind: .nonCharacter)),
    ])
    func malformedTextIsRefused(text: String, error: JSONError) {
        #expect(failure(text) == error)
    }

    @Test(
        "Invalid UTF-8 is refused where it begins",
        arguments: [
            ([0x80], 0), ([0x61, 0xc3], 1), ([0xc0, 0xaf], 0), ([0xed, 0xa0, 0x80], 0), ([0xf4, 0x90, 0x80, 0x80], 0),
            ([0x61, 0x62, 0xff], 2), ([0xe2, 0x82, 0x61], 0),
        ] as [([UInt8], Int)])
    func invalidUTF8IsRefusedAtItsOffset(bytes: [UInt8], offset: Int) {
        #expect(failure([0x22] + bytes + [0x22]) == JSONError(offset: offset + 1, kind: .invalidUTF8))
    }

    @Test func nonCharacterIsRefused() {
        #expect(failure([0x22, 0xef, 0xb7, 0x90, 0x22]) == JSONError(offset: 1, kind: .nonCharacter))
        #expect(failure([0x22, 0xf0, 0x9f, 0xbf, 0xbf, 0x22]) == JSONError(offset: 1, kind: .nonCharacter))
    }

    @Test func nestingDepthIsLimited() throws {
        let nested = { (count: Int) in
            Array((String(repeating: "[", count: count) + String(repeating: "]", count: count)).utf8)
        }
        _ = try JSONReader.read(nested(16))
        #expect(failure(nested(17)) == JSONError(offset: 16, kind: .tooDeep))
        _ = try JSONReader.read(nested(512), limits: JSONLimits(maxDepth: 10_000))
        #expect(failure(nested(513), limits: JSONLimits(maxDepth: 10_000))?.kind == .tooDeep)
        #expect(failure(Array(String(repeating: "{\"a\":", count: 100_000).utf8))?.kind == .tooDeep)
    }

    @Test func memberCountIsLimited() throws {
        let object = { (count: Int) in
            Array(("{" + (0..<count).map { "\"m\($0)\":0" }.joined(separator: ",") + "}").utf8)
        }
        #expect(try JSONReader.read(object(256)).object?.count == 256)
        #expect(failure(object(257))?.kind == .tooManyMembers)
    }

    @Test(arguments: [2, 32, 33, 34, 200]) func duplicateNameIsFoundInAnObjectOfAnySize(count: Int) throws {
        func object(last: String) -> [UInt8] {
            let members = (1..<count).map { "\"n\($0)\":\($0)" } + ["\"\(last)\":0"]
            return Array("{\(members.joined(separator: ","))}".utf8)
        }
        #expect(try JSONReader.read(object(last: "new")).object?.count == count)
        for name in Set([1, count / 2, count - 1].filter { $0 > 0 }.map { "n\($0)" }) {
            #expect(throws: JSONError.self) { try JSONReader.read(object(last: name)) }
        }
    }

    @Test("Every truncation of a text is refused without a crash") func truncatedTextIsRefused() {
        let text = Array(#"{"a":[1,-2.5e3,"x\u20ac\ud834\udd1e€"],"b":{"c":null,"d":true}}"#.utf8)
        for end in 0..<text.count { #expect(failure(Array(text[..<end])) != nil) }
        #expect(failure(text) == nil)
    }

    @Test("With any byte in any place, a text is refused or survives a round trip")
    func mutatedTextIsReadOrRefused() throws {
        let text = Array(#"{"a":[1,2.5,"x\u20ac"],"b":null}"#.utf8)
        for place in text.indices {
            for byte in UInt8.min...UInt8.max {
                var changed = text
                changed[place] = byte
                guard let value = try? JSONReader.read(changed) else { continue }
                #expect(try JSONReader.read(JSONWriter.write(value)) == value)
            }
        }
    }

    @Test func errorNamesItsOffset() {
        #expect(failure("[1 2]")?.message == "unexpected '2', at byte 3")
        #expect(failure("[\u{1}]")?.message == "unexpected byte 0x01, at byte 1")
        #expect(failure("{\"a\":1,\"a\":2}")?.message == "the name \"a\" appears twice in one object, at byte 7")
    }
}
