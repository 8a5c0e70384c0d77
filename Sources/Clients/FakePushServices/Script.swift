/// A sequence that ends after its last item, or repeats it forever.
struct AnswerSequence<Item: Sendable>: Sendable {
    private var items: [Item]
    private let repeatsLast: Bool

    init(_ items: [Item] = [], repeatsLast: Bool = false) {
        self.items = items
        self.repeatsLast = repeatsLast
    }

    var isEmpty: Bool { items.isEmpty }

    mutating func next() -> Item? {
        guard items.count > 1 || !repeatsLast else { return items.first }
        return items.isEmpty ? nil : items.removeFirst()
    }
}

/// Scripted answers by prefix of the device token. The longest matching prefix applies. Tested in
/// `ScriptTests.swift`.
struct Script {
    private var entries: [String: AnswerSequence<ScriptedAnswer>] = [:]

    mutating func set(_ prefix: String, _ answers: [ScriptedAnswer], repeatsLast: Bool) {
        entries[prefix] = answers.isEmpty ? nil : AnswerSequence(answers, repeatsLast: repeatsLast)
    }

    /// Takes the next answer for a token; nil if no script matches it.
    mutating func take(for token: String) -> ScriptedAnswer? {
        guard !entries.isEmpty else { return nil }
        let prefix = entries.keys.filter { token.hasPrefix($0) }.max { $0.utf8.count < $1.utf8.count }
        guard let prefix else { return nil }
        let answer = entries[prefix]?.next()
        if entries[prefix]?.isEmpty == true { entries[prefix] = nil }
        return answer
    }
}
