/// The languages that a user prefers, best first: a single tag (`de-AT`), or an Accept-Language
/// value (RFC 9110 §12.5.4: `de-AT, de;q=0.8, *;q=0.1`). Invalid ranges are skipped.
struct LanguageRanges {
    /// The tags in lower case.
    let tags: [String]

    /// The maximum length and number of ranges; no real list exceeds them.
    private static let bytes = 512
    private static let most = 16

    init(_ text: String) {
        guard text.utf8.count <= Self.bytes else {
            tags = []
            return
        }
        let ranges = text.split(separator: ",").prefix(Self.most).compactMap { Self.range($0) }
        // Among equal weights the first range wins.
        tags = ranges.enumerated().sorted { ($1.element.weight, $0.offset) < ($0.element.weight, $1.offset) }
            .map(\.element.tag)
    }

    private static func range(_ text: Substring) -> (tag: String, weight: Int)? {
        let parts = text.split(separator: ";", omittingEmptySubsequences: false).map { part in
            String(part.filter { $0 != " " && $0 != "\t" }).lowercased()
        }
        guard let tag = parts.first, isTag(tag) else { return nil }
        guard parts.count > 1 else { return (tag, 1000) }
        guard parts.count == 2, parts[1].hasPrefix("q="), let weight = thousandths(parts[1].dropFirst(2)), weight > 0
        else { return nil }
        return (tag, weight)
    }

    /// Converts a weight to thousandths, `0.8` to 800; nil if it is not a weight.
    private static func thousandths(_ text: Substring) -> Int? {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = parts.first, whole == "0" || whole == "1" else { return nil }
        let digits = parts.count == 2 ? parts[1] : ""
        guard digits.utf8.count <= 3, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        let padded = String(digits) + String(repeating: "0", count: 3 - digits.utf8.count)
        let weight = (whole == "1" ? 1000 : 0) + (Int(padded) ?? 0)
        return weight <= 1000 ? weight : nil
    }

    /// Returns whether the text has the form of a language tag (RFC 5646) in lower case.
    static func isTag(_ text: String) -> Bool {
        let groups = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        let isLetter = { (byte: UInt8) in (0x61...0x7a).contains(byte) }
        let isRight = { (group: Substring.UTF8View) in
            (1...8).contains(group.count) && group.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) }
        }
        return text.utf8.count <= 35 && groups.allSatisfy(isRight)
            && groups.first.map { $0.count >= 2 && $0.allSatisfy(isLetter) } == true
    }

    /// Returns the tag and its shorter forms (RFC 4647 §3.4): `zh-hant-tw`, `zh-hant`, `zh`.
    static func fallbacks(of tag: String) -> [String] {
        var groups = tag.split(separator: "-")
        var all: [String] = []
        while !groups.isEmpty {
            // A single letter only introduces the subtag after it, so it cannot end a tag.
            if groups.last?.count ?? 0 > 1 || groups.count == 1 { all.append(groups.joined(separator: "-")) }
            groups.removeLast()
        }
        return all
    }
}

/// The order in which a user prefers languages, for texts outside the message catalogue.
public enum LanguagePreference {
    /// Returns the tags of a language tag or an Accept-Language value, best first, each followed by
    /// its shorter forms, in lower case.
    public static func tags(_ text: String) -> [String] {
        LanguageRanges(text).tags.flatMap { LanguageRanges.fallbacks(of: $0) }
    }
}
