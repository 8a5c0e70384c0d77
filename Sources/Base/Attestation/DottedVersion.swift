/// A version with up to four numbers, such as 18.0.1 of an operating system or an app.
public struct DottedVersion: Sendable, Equatable, CustomStringConvertible {
    /// The numbers, without zeros at the end.
    private let numbers: [Int]
    public let description: String

    /// Reads numbers of at most 63 bits, as the version codes of Android are, with dots between
    /// them. Returns nil for another form.
    public init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard (1...4).contains(parts.count) else { return nil }
        var numbers: [Int] = []
        for part in parts {
            guard part.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(Substring(part)) else { return nil }
            numbers.append(number)
        }
        self.numbers = Self.significant(numbers)
        description = text
    }

    /// Reads the form of Android's attestations, in which 130102 is 13.1.2. A negative number is
    /// read as 0.
    init(android number: Int64) {
        let number = Int(max(0, number))
        numbers = Self.significant([number / 10_000, number / 100 % 100, number % 100])
        description = "\(number / 10_000).\(number / 100 % 100).\(number % 100)"
    }

    private static func significant(_ numbers: [Int]) -> [Int] {
        var numbers = numbers
        while numbers.last == 0 { numbers.removeLast() }
        return numbers
    }

    public static func == (a: DottedVersion, b: DottedVersion) -> Bool { a.numbers == b.numbers }

    /// Whether this version is the other one or a later one.
    public func isAtLeast(_ other: DottedVersion) -> Bool { !numbers.lexicographicallyPrecedes(other.numbers) }
}
