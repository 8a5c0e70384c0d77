/// An entry of a gettext file.
struct POEntry {
    var line = 0
    var context: String?
    var isFuzzy = false
    var id: String?
    /// The strings by plural form; a text without plural has only form 0.
    var strings: [Int: String] = [:]
    var hasForms = false
}

/// A reader of `.po` files: entries of `msgctxt`, `msgid`, `msgid_plural`, `msgstr` and
/// `msgstr[N]`. Each has a quoted text that may continue on the next lines. Comments are skipped,
/// except `#, fuzzy`.
struct POReader {
    struct Fault: Error {
        let line: Int
        let message: String
    }

    private enum Part: Equatable {
        case context, id, plural
        case string(Int)
    }

    private var entries: [POEntry] = []
    private var entry = POEntry()
    private var part: Part?
    private var line = 0

    static func read(_ bytes: [UInt8]) throws(Fault) -> [POEntry] {
        var reader = POReader()
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Fault(line: reader.brokenLine(bytes), message: "is not UTF-8")
        }
        let plain = text.hasPrefix("\u{feff}") ? text.dropFirst() : text[...]
        for line in plain.split(omittingEmptySubsequences: false, whereSeparator: { $0 == "\n" || $0 == "\r\n" }) {
            reader.line += 1
            try reader.take(line.drop { $0 == " " || $0 == "\t" })
        }
        try reader.close()
        return reader.entries
    }

    private func brokenLine(_ bytes: [UInt8]) -> Int {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        return (lines.firstIndex { String(validating: $0, as: UTF8.self) == nil } ?? 0) + 1
    }

    private mutating func take(_ text: Substring) throws(Fault) {
        if text.allSatisfy(\.isWhitespace) { return }
        if text.hasPrefix("#") {
            // A comment belongs to the entry after it.
            if isWhole { try close() }
            if text.hasPrefix("#,"), text.contains("fuzzy") { entry.isFuzzy = true }
            return
        }
        if text.hasPrefix("\"") {
            guard let part else { throw fault("a text must follow msgctxt, msgid or msgstr") }
            return append(try quoted(text), to: part)
        }
        let end = text.firstIndex { $0 == "\"" || $0 == " " || $0 == "\t" } ?? text.endIndex
        let next = try part(named: text[..<end])
        let isNew = next == .context || (next == .id && entry.context == nil) || (next == .id && isWhole)
        if isNew, isWhole || next == .context && (entry.context != nil || entry.id != nil) { try close() }
        if isFilled(next) { throw fault("\(text[..<end]) appears twice") }
        if entry.line == 0 { entry.line = line }
        part = next
        append(try quoted(text[end...].drop { $0 == " " || $0 == "\t" }), to: next)
    }

    private func part(named name: Substring) throws(Fault) -> Part {
        switch name {
        case "msgctxt": return .context
        case "msgid": return .id
        case "msgid_plural": return .plural
        case "msgstr": return .string(0)
        default:
            guard name.hasPrefix("msgstr["), name.hasSuffix("]"), let form = Int(name.dropFirst(7).dropLast()),
                (0..<10).contains(form)
            else { throw fault("\(name.prefix(40)) is neither msgctxt, msgid, msgid_plural, msgstr nor msgstr[0]") }
            return .string(form)
        }
    }

    private var isWhole: Bool { !entry.strings.isEmpty }

    private func isFilled(_ part: Part) -> Bool {
        switch part {
        case .context: entry.context != nil
        case .id: entry.id != nil
        case .plural: entry.hasForms
        case .string(let form): entry.strings[form] != nil
        }
    }

    private mutating func append(_ text: String, to part: Part) {
        switch part {
        case .context: entry.context = (entry.context ?? "") + text
        case .id: entry.id = (entry.id ?? "") + text
        case .plural: entry.hasForms = true
        case .string(let form): entry.strings[form, default: ""] += text
        }
    }

    private mutating func close() throws(Fault) {
        defer {
            entry = POEntry()
            part = nil
        }
        if isWhole, entry.id != nil { return entries.append(entry) }
        guard entry.line > 0 else { return }
        throw Fault(line: entry.line, message: entry.id == nil ? "has no msgid" : "has no msgstr")
    }

    /// Returns the text between the quotes, with escapes resolved.
    private func quoted(_ text: Substring) throws(Fault) -> String {
        var rest = text
        while let last = rest.last, last.isWhitespace { rest.removeLast() }
        guard rest.count >= 2, rest.first == "\"", rest.last == "\"" else { throw fault("a text must be in quotes") }
        rest = rest.dropFirst().dropLast()
        var result = ""
        while let sign = rest.popFirst() {
            if sign == "\"" { throw fault("a quote inside a text must be written \\\"") }
            guard sign == "\\" else {
                result.append(sign)
                continue
            }
            switch rest.popFirst() {
            case "n": result.append("\n")
            case "t": result.append("\t")
            case "\"": result.append("\"")
            case "\\": result.append("\\")
            default: throw fault("after a backslash only n, t, a quote or a backslash is allowed")
            }
        }
        return result
    }

    private func fault(_ message: String) -> Fault { Fault(line: line, message: message) }
}
