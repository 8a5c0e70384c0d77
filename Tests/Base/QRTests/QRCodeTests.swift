import Glibc
import QR
import Testing

@Suite struct QRCodeTests {
    static let texts = [
        "A", "0123456789", "HELLO WORLD", "https://login.example.com:8080/", "Grüße 🙂",
        "twoefay://enrol?relay=https://login.example.com:8080&website=shop&token=0123456789abcdef0123456789abcdef"
            + "&code=abcdefghijklmnopqrs&pin=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",
        String(repeating: "long ", count: 300),
    ]

    /// Returns the rows of the code that `qrencode` draws, with one character a module.
    private func reference(_ text: String) throws -> [String] {
        try output(of: "printf %s '\(text)' | qrencode -l M -m 0 -t ASCII -o -").map { line in
            stride(from: line.startIndex, to: line.endIndex, by: 2)
                .map { line[$0] == UInt8(ascii: "#") ? "#" : "." }.joined()
        }
    }

    /// Returns the lines that a shell command prints.
    private func output(of command: String) throws -> [ArraySlice<UInt8>] {
        let pipe = try #require(popen(command, "r"))
        defer { #expect(pclose(pipe) == 0) }
        var output: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while case let count = fread(&chunk, 1, chunk.count, pipe), count > 0 { output += chunk[..<count] }
        return output.split(separator: UInt8(ascii: "\n"))
    }

    private func rows(_ code: QRCode, from: Int = 0, to: Int? = nil) -> [String] {
        let range = from..<(to ?? code.width)
        return range.map { y in range.map { x in code.isDark(x: x, y: y) ? "#" : "." }.joined() }
    }

    @Test("The modules equal those of the qrencode command", arguments: texts) func modulesMatchQrencode(text: String)
        throws
    {
        #expect(rows(try QRCode(text)) == (try reference(text)))
    }

    /// Returns the rows of pixels that Python reads from a PNG image, with one character a pixel.
    /// It checks the sums of the chunks and of the compressed stream.
    private func pixels(_ png: [UInt8]) throws -> [String] {
        let script = """
            import struct, sys, zlib
            data = open(sys.argv[1], "rb").read()
            assert data[:8] == b"\\x89PNG\\r\\n\\x1a\\n"
            at, chunks = 8, []
            while at < len(data):
                size, kind = struct.unpack(">I4s", data[at:at + 8])
                body, (crc,) = data[at + 8:at + 8 + size], struct.unpack(">I", data[at + 8 + size:at + 12 + size])
                assert zlib.crc32(kind + body) == crc
                chunks.append((kind, body))
                at += 12 + size
            assert [kind for kind, _ in chunks] == [b"IHDR", b"IDAT", b"IEND"]
            width, height, *form = struct.unpack(">IIBBBBB", chunks[0][1])
            assert form == [1, 0, 0, 0, 0]
            lines, row = zlib.decompress(chunks[1][1]), 1 + (width + 7) // 8
            assert len(lines) == height * row
            for y in range(height):
                line = lines[y * row:(y + 1) * row]
                assert line[0] == 0
                print("".join("#." [line[1 + x // 8] >> (7 - x % 8) & 1] for x in range(width)))
            """
        var template = Array("/tmp/twoefay-png-XXXXXX".utf8CString)
        let file = mkstemp(&template)
        try #require(file >= 0)
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer { unlink(path) }
        #expect(png.withUnsafeBytes { write(file, $0.baseAddress, $0.count) } == png.count)
        close(file)
        return try output(of: "python3 -c '\(script)' \(path)").map { String(decoding: $0, as: UTF8.self) }
    }

    @Test("The PNG image shows the modules and a light margin of four modules", arguments: texts)
    func pngContainsTheModulesAndTheMargin(text: String) throws {
        let code = try QRCode(text)
        let expected = rows(code, from: -4, to: code.width + 4).flatMap { row in
            Array(repeating: row.map { String(repeating: $0, count: 4) }.joined(), count: 4)
        }
        #expect(try pixels(code.png()) == expected)
    }

    @Test("The image shows the modules and a light margin of four modules", arguments: texts)
    func svgContainsTheModulesAndTheMargin(text: String) throws {
        let code = try QRCode(text)
        let svg = code.svg()
        let side = code.width + 8
        #expect(svg.hasPrefix("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(side) \(side)\""))
        #expect(svg.contains("shape-rendering=\"crispEdges\""))
        #expect(svg.contains("<path fill=\"#fff\" d=\"M0 0h\(side)v\(side)H0z\"/>"))
        let path = try #require(svg.components(between: "<path stroke=\"#000\" d=\"", and: "\"/></svg>"))
        var drawn = [[String]](repeating: Array(repeating: ".", count: side), count: side)
        for row in path.split(separator: "M") {
            var pen = 0
            let (start, rest) = try #require(row.split(separator: ".5", maxSplits: 1).pair)
            let (x, y) = try #require(start.split(separator: " ").pair)
            pen = try #require(Int(x))
            let line = try #require(Int(y))
            for part in rest.split(separator: "h") {
                let (length, move) = part.split(separator: "m").pair ?? (part, "0 0")
                let end = pen + (try #require(Int(length)))
                for at in pen..<end { drawn[line][at] = "#" }
                pen = end + (try #require(Int(move.split(separator: " ")[0])))
            }
        }
        #expect(drawn.map { $0.joined() } == rows(code, from: -4, to: code.width + 4))
    }

    @Test("Half-block characters show the same modules", arguments: texts, [true, false])
    func terminalOutputShowsTheModules(text: String, colored: Bool) throws {
        let code = try QRCode(text)
        var drawn: [String] = []
        for line in code.terminal(colored: colored).split(separator: "\n") {
            var upper = ""
            var lower = ""
            var body = line
            if colored {
                #expect(body.hasPrefix("\u{1b}[38;5;16;48;5;231m") && body.hasSuffix("\u{1b}[0m"))
                body = body.dropFirst("\u{1b}[38;5;16;48;5;231m".count).dropLast("\u{1b}[0m".count)
            }
            for character in body {
                let ink: [Character: (Bool, Bool)] = [
                    "█": (true, true), "▀": (true, false), "▄": (false, true), " ": (false, false),
                ]
                let (top, bottom) = try #require(ink[character])
                upper += top == colored ? "#" : "."
                lower += bottom == colored ? "#" : "."
            }
            drawn += [upper, lower]
        }
        #expect(Array(drawn.dropLast()) == rows(code, from: -4, to: code.width + 4))
        // The lower half of the last line has the colour of the surroundings.
        #expect(drawn.last?.contains(colored ? "#" : ".") == false)
    }

    @Test func oversizedTextIsRefused() {
        #expect(throws: QRCode.Failure.unfit) { try QRCode("") }
        #expect(throws: QRCode.Failure.unfit) { try QRCode("a\u{0}b") }
        #expect(throws: QRCode.Failure.tooLong) { try QRCode(String(repeating: "x", count: 3000)) }
    }
}

extension String {
    fileprivate func components(between start: String, and end: String) -> Substring? {
        guard let from = firstRange(of: start)?.upperBound, let to = self[from...].firstRange(of: end)?.lowerBound
        else { return nil }
        return self[from..<to]
    }
}

extension Array {
    fileprivate var pair: (Element, Element)? { count == 2 ? (self[0], self[1]) : nil }
}
