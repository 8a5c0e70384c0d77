extension Parser {
    mutating func string(_ text: Span<UInt8>) throws(JSONError) -> String {
        at += 1
        let start = at
        let plain = text.withUnsafeBufferPointer { PlainRun(in: $0, from: start) }
        at = plain.end
        guard at < text.count else { throw error(.incomplete) }
        switch text[at] {
        case UInt8(ascii: "\""):
            let string = try run(text, from: start, ascii: plain.isASCII)
            at += 1
            return string
        case UInt8(ascii: "\\"): return try escapedString(text, from: start)
        default: throw error(.controlCharacter)
        }
    }

    /// Reads a string with at least one escape, from runs of plain text and decoded escapes.
    private mutating func escapedString(_ text: Span<UInt8>, from start: Int) throws(JSONError) -> String {
        var string = ""
        var runStart = start
        while at < text.count {
            let byte = text[at]
            if byte == UInt8(ascii: "\"") {
                string += try run(text, from: runStart, ascii: false)
                at += 1
                return string
            }
            if byte == UInt8(ascii: "\\") {
                string += try run(text, from: runStart, ascii: false)
                string.unicodeScalars.append(try escape(text))
                runStart = at
                continue
            }
            guard byte >= 0x20 else { throw error(.controlCharacter) }
            at += 1
        }
        throw error(.incomplete)
    }

    /// The text from `start` to the position, checked to be UTF-8 without noncharacters.
    private func run(_ text: Span<UInt8>, from start: Int, ascii: Bool) throws(JSONError) -> String {
        let bytes = text.extracting(start..<at)
        if ascii { return bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) } }
        let string = bytes.withUnsafeBufferPointer { String(validating: $0, as: UTF8.self) }
        guard let string else {
            var offset = start
            do {
                _ = try UTF8Span(validating: bytes)
            } catch {
                offset += error.byteOffsets.lowerBound
            }
            throw error(.invalidUTF8, at: offset)
        }
        if string.unicodeScalars.contains(where: Self.isNonCharacter) { throw error(.nonCharacter, at: start) }
        return string
    }

    /// Reads an escape, from the backslash to behind its end.
    private mutating func escape(_ text: Span<UInt8>) throws(JSONError) -> Unicode.Scalar {
        let start = at
        at += 1
        guard at < text.count else { throw error(.incomplete) }
        let letter = text[at]
        at += 1
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(letter)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{c}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): break
        default: throw error(.invalidEscape, at: start)
        }
        var code = try hexadecimal(text)
        if (0xd800...0xdbff).contains(code) {
            for wanted in [UInt8(ascii: "\\"), UInt8(ascii: "u")] {
                guard at < text.count else { throw error(.incomplete) }
                guard text[at] == wanted else { throw error(.loneSurrogate, at: start) }
                at += 1
            }
            let low = try hexadecimal(text)
            guard (0xdc00...0xdfff).contains(low) else { throw error(.loneSurrogate, at: start) }
            code = 0x10000 + (code - 0xd800) << 10 + (low - 0xdc00)
        }
        guard code != 0 else { throw error(.nul, at: start) }
        guard let scalar = Unicode.Scalar(code) else { throw error(.loneSurrogate, at: start) }
        guard !Self.isNonCharacter(scalar) else { throw error(.nonCharacter, at: start) }
        return scalar
    }

    private mutating func hexadecimal(_ text: Span<UInt8>) throws(JSONError) -> UInt32 {
        var code: UInt32 = 0
        for _ in 0..<4 {
            guard at < text.count else { throw error(.incomplete) }
            switch text[at] {
            case let byte where (0x30...0x39).contains(byte): code = code << 4 | UInt32(byte - 0x30)
            case let byte where (0x41...0x46).contains(byte & 0xdf): code = code << 4 | UInt32((byte & 0xdf) - 0x37)
            default: throw error(.invalidEscape)
            }
            at += 1
        }
        return code
    }

    private static func isNonCharacter(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value & 0xfffe == 0xfffe || (0xfdd0...0xfdef).contains(scalar.value)
    }
}
