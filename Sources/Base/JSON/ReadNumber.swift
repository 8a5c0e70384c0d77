extension Parser {
    /// Reads a number. `-0` is the integer 0. A number with a fraction or an exponent is a double,
    /// even `1.0`.
    mutating func number(_ text: Span<UInt8>) throws(JSONError) -> JSONValue {
        let start = at
        let negative = text[at] == UInt8(ascii: "-")
        if negative { at += 1 }
        let first = at
        var magnitude: Int64 = 0  // negative or zero throughout, because only then Int64.min fits
        var fits = true
        while at < text.count, let digit = digit(text[at]) {
            let (times, over) = magnitude.multipliedReportingOverflow(by: 10)
            let (sum, under) = times.subtractingReportingOverflow(Int64(digit))
            fits = fits && !over && !under
            magnitude = sum
            at += 1
        }
        guard at > first else { throw at < text.count ? error(.invalidNumber) : error(.incomplete) }
        guard text[first] != UInt8(ascii: "0") || at == first + 1 else { throw error(.invalidNumber, at: first) }
        let isDouble = try fractionOrExponent(text)
        if !isDouble {
            guard fits, negative || magnitude != .min else { throw error(.numberOutOfRange, at: start) }
            return .integer(negative ? magnitude : -magnitude)
        }
        // No double needs more digits. More would only cost time.
        guard at - start <= 64 else { throw error(.numberOutOfRange, at: start) }
        let digits = text.extracting(start..<at).withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
        guard let value = Double(digits), value.isFinite else { throw error(.numberOutOfRange, at: start) }
        return .number(value)
    }

    private mutating func fractionOrExponent(_ text: Span<UInt8>) throws(JSONError) -> Bool {
        let start = at
        if at < text.count, text[at] == UInt8(ascii: ".") {
            at += 1
            try digits(text)
        }
        if at < text.count, text[at] | 0x20 == UInt8(ascii: "e") {
            at += 1
            if at < text.count, text[at] == UInt8(ascii: "+") || text[at] == UInt8(ascii: "-") { at += 1 }
            try digits(text)
        }
        return at > start
    }

    /// Reads at least one digit.
    private mutating func digits(_ text: Span<UInt8>) throws(JSONError) {
        let first = at
        while at < text.count, digit(text[at]) != nil { at += 1 }
        guard at > first else { throw at < text.count ? error(.invalidNumber) : error(.incomplete) }
    }

    private func digit(_ byte: UInt8) -> UInt8? { (0x30...0x39).contains(byte) ? byte - 0x30 : nil }
}
