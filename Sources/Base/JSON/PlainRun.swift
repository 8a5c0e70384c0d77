/// A run of text that a JSON string holds as it is: up to a quotation mark, a backslash or a control
/// character. It is searched eight bytes at a time, because most strings are one long run.
struct PlainRun {
    /// The index of the byte that ends the run, or the number of bytes.
    private(set) var end: Int
    /// Whether the run has only ASCII characters.
    private(set) var isASCII = true

    private static let ones: UInt64 = 0x0101_0101_0101_0101
    private static let high: UInt64 = 0x8080_8080_8080_8080

    init(in bytes: UnsafeBufferPointer<UInt8>, from start: Int) {
        end = start
        var others: UInt64 = 0
        while end + 8 <= bytes.count {
            let word = UnsafeRawBufferPointer(bytes).loadUnaligned(fromByteOffset: end, as: UInt64.self)
            guard Self.ends(in: word) == 0 else { break }
            others |= word & Self.high
            end += 8
        }
        isASCII = others == 0
        while end < bytes.count, !Self.isEnd(bytes[end]) {
            if bytes[end] >= 0x80 { isASCII = false }
            end += 1
        }
    }

    /// Marks the highest bit of bytes that end a run. It is zero exactly if there are none.
    private static func ends(in word: UInt64) -> UInt64 {
        let control = (word &- ones &* 0x20) & ~word
        let quote = word ^ (ones &* UInt64(UInt8(ascii: "\"")))
        let backslash = word ^ (ones &* UInt64(UInt8(ascii: "\\")))
        return (control | (quote &- ones) & ~quote | (backslash &- ones) & ~backslash) & high
    }

    private static func isEnd(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }
}
