/// A version with up to four numbers, such as 18.0.1 of an operating system or an app.
public struct DottedVersion: Sendable, Equatable, CustomStringConvertible {
    /// The numbers, without zeros at the end.
    private let numbers: [Int]
    public let description: String

    /// Reads numbers of at most nine digits with dots between them. Returns nil for another form.
    public init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard (1...4).contains(parts.count) else { return nil }
        var numbers: [Int] = []
        for part in parts {
            guard (1...9).contains(part.count), part.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            numbers.append(part.reduce(0) { $0 * 10 + Int($1 - 0x30) })
        }
        while numbers.last == 0 { numbers.removeLast() }
        self.numbers = numbers
        description = text
    }

    /// Reads the form of Android's attestations, in which 130102 is 13.1.2.
    init?(android number: Int64) {
        guard (0...999_999).contains(number) else { return nil }
        self.init("\(number / 10_000).\(number / 100 % 100).\(number % 100)")
    }

    public static func == (a: DottedVersion, b: DottedVersion) -> Bool { a.numbers == b.numbers }

    /// Whether this version is the other one or a later one.
    public func isAtLeast(_ other: DottedVersion) -> Bool { !numbers.lexicographicallyPrecedes(other.numbers) }
}
