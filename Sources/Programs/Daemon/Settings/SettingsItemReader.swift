import YAML

/// A reader of one item of a list in the settings, such as a gateway or a directory. It reports all
/// problems of the item at once, each with its position.
protocol SettingsItemReader {
    var node: YAMLNode { get }
    /// The name of the item in messages.
    var label: String { get }
    var problems: [(place: YAMLPosition, message: String)] { get set }
}

extension SettingsItemReader {
    /// Returns the items of a list; a single value counts as a list of one.
    func list(_ key: String) -> [YAMLNode] {
        guard let node = node[key], !node.isNull else { return [] }
        return node.sequence ?? [node]
    }

    mutating func text(_ key: String) -> String? {
        guard let node = node[key], !node.isNull else { return nil }
        guard let text = node.string, !text.isEmpty else {
            printError(node.place, "\(label): \(key) must be a single text")
            return nil
        }
        return text
    }

    mutating func file(_ key: String) -> FileName? { text(key).map { FileName($0) } }

    mutating func flag(_ key: String) -> Bool {
        guard let node = node[key] else { return false }
        if let bool = node.bool { return bool }
        printError(node.place, "\(label): \(key) must be true or false")
        return false
    }

    mutating func integer(_ key: String, _ range: ClosedRange<Int64>) -> Int? {
        guard let node = node[key] else { return nil }
        if let number = node.integer, range.contains(number) { return Int(number) }
        printError(
            node.place, "\(label): \(key) must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        return nil
    }

    mutating func word(_ key: String, _ words: [String]) -> String? {
        guard let text = text(key) else { return nil }
        if words.contains(text) { return text }
        printError(place(key), "\(label): \(key) must be one of \(words.joined(separator: ", "))")
        return nil
    }

    mutating func require(_ keys: String...) {
        for key in keys where node[key] == nil { printError(node.place, "\(label): \(key) is missing") }
    }

    func place(_ key: String) -> YAMLPosition { node[key]?.place ?? node.place }

    mutating func printError(_ place: YAMLPosition, _ message: String) {
        // A value may be read twice; its problem is reported once.
        if !problems.contains(where: { $0 == (place, message) }) { problems.append((place, message)) }
    }

    static func isName(_ text: String) -> Bool {
        (1...32).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x61...0x7a).contains($0 | 0x20)
                    || [UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_")].contains($0)
            }
    }
}
