/// An amount of money as a website writes it in a challenge's details. It is compared and never
/// computed with.
public struct Amount: Sendable, Equatable {
    public let text: String
    private let whole: UInt64
    /// The fraction in millionths.
    private let fraction: UInt64

    /// Parses digits with at most one point and at most six decimals. A thousands separator and a
    /// decimal comma could be confused, so a text with either is not an amount.
    public init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count),
            parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy { (0x30...0x39).contains($0) } }), parts[0].count <= 15
        else { return nil }
        let decimals = parts.count == 2 ? Array(parts[1]) : []
        guard decimals.count <= 6 else { return nil }
        self.text = text
        whole = parts[0].reduce(0) { $0 * 10 + UInt64($1 - 0x30) }
        fraction = (0..<6).reduce(0) { $0 * 10 + ($1 < decimals.count ? UInt64(decimals[$1] - 0x30) : 0) }
    }

    /// Parses the amount in the value of a detail such as `12.50`, `12.50 EUR` or `EUR 12.50`.
    public init?(detail value: String) {
        let words = value.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count <= 2 else { return nil }
        let amounts = words.compactMap { Amount(String($0)) }
        guard amounts.count == 1, words.allSatisfy({ Amount(String($0)) != nil || Self.isCurrency($0) }) else {
            return nil
        }
        self = amounts[0]
    }

    private static func isCurrency(_ word: Substring) -> Bool {
        word.utf8.count == 3 && word.utf8.allSatisfy { (0x41...0x5a).contains($0) } || ["€", "$", "£"].contains(word)
    }

    /// Compares the numbers, not the texts.
    public func isBelow(_ bound: Amount) -> Bool { (whole, fraction) < (bound.whole, bound.fraction) }
}
