import Testing
import YAML

private func read(_ text: String) throws(YAMLError) -> YAMLNode {
    try YAMLReader.read(Array(text.utf8), file: "t.yaml")
}

private func failure(_ bytes: [UInt8]) -> String? {
    do {
        _ = try YAMLReader.read(bytes, file: "t.yaml")
        return nil
    } catch {
        return error.description
    }
}

private func failure(_ text: String) -> String? { failure(Array(text.utf8)) }

@Suite struct YAMLReaderTests {
    @Test("A typical settings file, with the position of each value") func settingsDocumentIsRead() throws {
        let root = try read(
            """
            # Settings
            origin: https://login.example.com:8080
            listen: "0.0.0.0:8080"     # everywhere
            tls:     { certificate: server.pem, key: server.key }
            mail:
              from: 'login@example.com'
              retries: 3
              tls: true
            sms:
              gateways:
                - { name: first, port: 13013 }
                - name: second
            empty:
            """)
        #expect(root.mapping?.map(\.name) == ["origin", "listen", "tls", "mail", "sms", "empty"])
        #expect(root["origin"]?.string == "https://login.example.com:8080")
        #expect(root["listen"]?.string == "0.0.0.0:8080")
        #expect(root["tls"]?["key"]?.string == "server.key")
        #expect(root["mail"]?["from"]?.string == "login@example.com")
        #expect(root["mail"]?["retries"]?.integer == 3)
        #expect(root["mail"]?["tls"]?.bool == true)
        #expect(root["sms"]?["gateways"]?.sequence?.count == 2)
        #expect(root["sms"]?["gateways"]?.sequence?[0]["port"]?.integer == 13013)
        #expect(root["sms"]?["gateways"]?.sequence?[1]["name"]?.string == "second")
        #expect(root["empty"]?.isNull == true)
        #expect(root["nothing"] == nil)
        #expect((root.line, root.column) == (2, 1))
        #expect(root["tls"].map { ($0.line, $0.column) } ?? (0, 0) == (4, 10))
        #expect(root["tls"]?["key"]?.place == YAMLPosition(file: "t.yaml", line: 4, column: 42))
        #expect(root["tls"]?.mapping?[1].place == YAMLPosition(file: "t.yaml", line: 4, column: 37))
        #expect(root["sms"]?["gateways"]?.sequence?[1]["name"]?.place.line == 12)
    }

    @Test func blockScalarsAreRead() throws {
        let root = try read("folded: >\n  a\n  b\nkept: |\n  a\n  b\nescaped: \"a\\n\\u00e9\"\nlong: a\n  b")
        #expect(root["folded"]?.string == "a b\n")
        #expect(root["kept"]?.string == "a\nb\n")
        #expect(root["escaped"]?.string == "a\né")
        #expect(root["long"]?.string == "a b")
    }

    @Test(
        "An empty document or one with only comments is null",
        arguments: ["", "\n\n", "# a comment\n", "---\n", "---\n...\n"])
    func emptyDocumentIsRead(text: String) throws {
        #expect(try read(text).isNull)
    }

    @Test func quotedNumberStaysText() throws {
        for text in ["'true'", "\"1\"", "'~'", "'null'", "''"] {
            let node = try read(text)
            #expect(node.bool == nil)
            #expect(node.integer == nil)
            #expect(!node.isNull)
            #expect(node.string != nil)
        }
    }

    @Test(arguments: [
        ("0", 0), ("-1", -1), ("8080", 8080), ("9223372036854775807", Int64.max), ("-9223372036854775808", Int64.min),
    ])
    func integersAreParsed(text: String, value: Int64) throws {
        #expect(try read(text).integer == value)
    }

    @Test(arguments: [
        "010", "0x10", "1_000", "1.0", "1e3", "+1", "--1", "-a", "９", "9223372036854775808", "1 2", "~", "-01",
    ])
    func malformedIntegersAreText(text: String) throws {
        #expect(try read(text).integer == nil)
    }

    @Test(arguments: ["yes", "on", "True", "TRUE", "y", "1", "no", "off"]) func yesAndNoAreNotBooleans(text: String)
        throws
    {
        #expect(try read(text).bool == nil)
    }

    @Test func byteOrderMarkAndCRLFAreAccepted() throws {
        #expect(try read("\u{feff}a: 1\r\nb: 2\r\n")["b"]?.integer == 2)
    }

    @Test func keysAreComparedByteForByte() throws {
        let root = try read("\u{212a}: 1\nK: 2\n")
        #expect(root["K"]?.integer == 2)
    }
}

@Suite struct YAMLRefusalTests {
    @Test(arguments: [
        ("a: 1\nb: 2\na: 3\n", "t.yaml:3:1: \"a\" is already set in line 1"),
        ("x:\n  { a: 1, a: 2 }\n", "t.yaml:2:11: \"a\" is already set in line 2"),
        ("a: &x 1\nb: 2\n", "t.yaml:1:4: anchors and aliases are not supported"),
        ("a: 1\nb: *x\n", "t.yaml:2:4: anchors and aliases are not supported"),
        ("a: &x { b: 1 }\n", "t.yaml:1:4: anchors and aliases are not supported"),
        ("- &x [1]\n", "t.yaml:1:3: anchors and aliases are not supported"),
        ("a: !!str 1\n", "t.yaml:1:4: tags are not supported"),
        ("!x { a: 1 }\n", "t.yaml:1:1: tags are not supported"),
        ("a: 1\n---\nb: 2\n", "t.yaml:2:1: a second document is not allowed"),
        ("? [a, b]\n: 1\n", "t.yaml:1:3: a name must be text"),
        ("a:\n\tb: 1\n", "t.yaml:2:1: a tab is not allowed for indentation; use spaces"),
        (
            "a: 1\n  b: 2\n",
            "t.yaml:2:4: mapping values are not allowed in this context"
        ),
        (
            "a: [1, 2\nb: 3\n",
            "t.yaml:2:2: while parsing a flow sequence, did not find expected ',' or ']'"
        ),
        ("a: 'x\n", "t.yaml:2:1: while scanning a quoted scalar, found unexpected end of stream"),
        ("a: \"\\q\"\n", "t.yaml:1:5: while parsing a quoted scalar, found unknown escape character"),
        ("ä: @x\n", "t.yaml:1:4: while scanning for the next token, found character that cannot start any token"),
        ("a: 1\nbé: \u{1}\n", "t.yaml:2:5: control characters are not allowed"),
        ("a: \0\n", "t.yaml:1:4: control characters are not allowed"),
    ])
    func refusalNamesItsPosition(text: String, message: String) {
        #expect(failure(text) == message)
    }

    @Test func invalidUTF8IsRefused() {
        #expect(failure(Array("a: 1\nb: é".utf8) + [0xff]) == "t.yaml:2:5: not valid UTF-8")
        #expect(failure([0xff, 0xfe, 0x61, 0x00]) == "t.yaml:1:1: not valid UTF-8")
        #expect(failure([0x61, 0x00, 0x3a, 0x00]) != nil)
    }

    @Test func sizeAndDepthAreLimited() {
        #expect(failure(String(repeating: "[", count: 32) + String(repeating: "]", count: 32)) == nil)
        #expect(failure(String(repeating: "[", count: 33)) == "t.yaml:1:33: nested too deeply")
        #expect(failure(String(repeating: "[", count: 100_000)) == "t.yaml:1:33: nested too deeply")
        #expect(failure(String(repeating: "#", count: 1_048_577)) == "t.yaml:1:1: larger than 1048576 bytes")
    }

    @Test("Truncated and changed documents are read or refused without a crash") func mutatedDocumentIsReadOrRefused() {
        let text = Array("a: { b: [1, 'x'], c: \"\\u00e9\" }\nd: |\n  é\n# end\n".utf8)
        for end in text.indices { _ = failure(Array(text[..<end])) }
        var refused = 0
        for at in text.indices {
            for byte in UInt8.min...UInt8.max {
                var changed = text
                changed[at] = byte
                if failure(changed) != nil { refused += 1 }
            }
        }
        #expect(refused > 1000)
    }
}
