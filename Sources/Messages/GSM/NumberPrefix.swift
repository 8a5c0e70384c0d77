/// A prefix of telephone numbers in E.164 form, such as `+49` or `+4915`; `+` matches all numbers.
public struct NumberPrefix: Sendable, Hashable, CustomStringConvertible {
    /// The prefix with the plus sign.
    public let text: String

    public static let all = NumberPrefix(checked: "+")

    private init(checked text: String) { self.text = text }

    /// Creates a prefix; nil unless the text is a plus sign and at most seven digits, of which the
    /// first is not 0.
    public init?(_ text: String) {
        let digits = text.utf8.dropFirst()
        guard text.utf8.first == UInt8(ascii: "+"), digits.count <= 7, digits.first != UInt8(ascii: "0"),
            digits.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        self.text = text
    }

    public var description: String { text }
    public var length: Int { text.utf8.count }

    public func matches(_ number: String) -> Bool { number.utf8.starts(with: text.utf8) }

    /// Returns the country calling code of a number, as ITU-T E.164 assigns them. The codes 1 and 7
    /// have one digit, those of two digits are listed, and all others have three.
    public static func country(of number: String) -> NumberPrefix {
        let digits = number.utf8.dropFirst().prefix(3)
        let length: Int
        if let first = digits.first, first == UInt8(ascii: "1") || first == UInt8(ascii: "7") {
            length = 1
        } else {
            length = twoDigits.contains(String(decoding: digits.prefix(2), as: UTF8.self)) ? 2 : 3
        }
        return NumberPrefix(checked: "+" + String(decoding: digits.prefix(length), as: UTF8.self))
    }

    private static let twoDigits = Set(
        """
        20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 66 81 82 84 86 90 91 92
        93 94 95 98
        """.split(whereSeparator: \.isWhitespace).map(String.init))
}

extension Sequence<NumberPrefix> {
    /// Returns the longest prefix that matches the number.
    public func longest(of number: String) -> NumberPrefix? {
        filter { $0.matches(number) }.max { $0.length < $1.length }
    }
}
