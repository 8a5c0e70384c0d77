/// An amount of money in one currency, as a website writes it in a challenge's details, or as the
/// policy `number-below` names it. It is compared and never computed with.
public struct Amount: Sendable, Equatable {
    public let text: String
    /// The code of the currency in ISO 4217, such as `EUR`.
    private let currency: String
    private let whole: UInt64
    /// The fraction in millionths.
    private let fraction: UInt64

    /// Parses an amount such as `12.50 EUR`, `EUR 12.50` or `€ 12.50`. The text must name the
    /// currency: 30 of one currency can be more than 3000 of another.
    public init?(_ text: String) {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2 else { return nil }
        let parsed = words.map { (number: Self.number($0), currency: Self.currency($0)) }
        guard let number = parsed[0].number ?? parsed[1].number,
            let currency = parsed[0].currency ?? parsed[1].currency,
            number.decimals != 3 || Self.currenciesInThousandths.contains(currency)
        else { return nil }
        self.text = text
        self.currency = currency
        (whole, fraction) = (number.whole, number.fraction)
    }

    /// The currencies whose amounts are written with three decimals. `1.500` of another one is more
    /// likely fifteen hundred in a country where the point separates thousands.
    private static let currenciesInThousandths: Set = ["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"]

    /// Parses digits with at most one point and at most six decimals. A thousands separator and a
    /// decimal comma could be confused, so a text with either is not a number.
    private static func number(_ word: Substring) -> (whole: UInt64, fraction: UInt64, decimals: Int)? {
        let parts = word.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count),
            parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy { (0x30...0x39).contains($0) } }), parts[0].count <= 15
        else { return nil }
        let decimals = parts.count == 2 ? Array(parts[1]) : []
        guard decimals.count <= 6 else { return nil }
        return (
            parts[0].reduce(0) { $0 * 10 + UInt64($1 - 0x30) },
            (0..<6).reduce(0) { $0 * 10 + ($1 < decimals.count ? UInt64(decimals[$1] - 0x30) : 0) }, decimals.count
        )
    }

    /// Returns the code of a currency. The euro is the only one with a sign that no other currency
    /// uses: there are dollars, pounds and yen of several countries.
    private static func currency(_ word: Substring) -> String? {
        guard !word.utf8.elementsEqual("€".utf8) else { return "EUR" }
        guard word.utf8.count == 3, word.utf8.allSatisfy({ (0x41...0x5a).contains($0) }) else { return nil }
        return String(word)
    }

    /// Compares the numbers, not the texts. An amount in another currency is never below the bound.
    public func isBelow(_ bound: Amount) -> Bool {
        currency.utf8.elementsEqual(bound.currency.utf8) && (whole, fraction) < (bound.whole, bound.fraction)
    }
}
