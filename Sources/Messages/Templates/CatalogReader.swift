import Bytes

/// A reader of a catalogue file. It collects the texts and all errors.
struct CatalogReader {
    private let path: String
    private var rule = PluralRule.germanic
    private(set) var texts: [TextKey: MessageCatalog.PluralForms] = [:]
    /// The line of each text.
    private(set) var lines: [TextKey: Int] = [:]
    private(set) var faults: [CatalogFault] = []

    private init(path: String) { self.path = path }

    static func read(_ file: CatalogFile) -> CatalogReader {
        var reader = CatalogReader(path: file.path)
        do throws(POReader.Fault) {
            for entry in try POReader.read(file.bytes) { reader.take(entry) }
        } catch {
            reader.fault(error.line, error.message)
        }
        return reader
    }

    private mutating func take(_ entry: POEntry) {
        guard let context = entry.context else {
            if entry.id == "" { return takeHeader(entry) }
            return fault(entry.line, "has no msgctxt, which names the text")
        }
        guard let key = TextKey.all.first(where: { $0.name == context }) else {
            let near = Spelling.nearest(to: context, among: TextKey.all.map(\.name)).map { "did you mean \($0)?" }
            let all = TextKey.all.map(\.name).joined(separator: ", ")
            return fault(entry.line, "\(context) is not the name of a text; \(near ?? "the names are \(all)")")
        }
        guard lines.updateValue(entry.line, forKey: key) == nil else {
            return fault(entry.line, "\(context) appears twice")
        }
        // As in gettext, these entries are not yet translated or not yet reviewed.
        if entry.isFuzzy || entry.strings.values.allSatisfy(\.isEmpty) { return }
        add(entry, key)
    }

    private mutating func add(_ entry: POEntry, _ key: TextKey) {
        let wanted = entry.hasForms ? Array(0..<rule.forms) : [0]
        guard entry.strings.keys.sorted() == wanted, !entry.strings.values.contains("") else {
            let forms = wanted.map { "msgstr[\($0)]" }.joined(separator: ", ")
            return fault(entry.line, "\(key.name) must have " + (entry.hasForms ? "all of \(forms)" : "msgstr only"))
        }
        if entry.hasForms, !key.placeholders.contains(.minutes) {
            return fault(entry.line, "\(key.name) has no plural: remove msgid_plural")
        }
        var forms: [Template] = []
        for form in wanted {
            do throws(Template.Fault) {
                forms.append(try Template(entry.strings[form] ?? "", of: key))
            } catch {
                fault(entry.line, "\(key.name) \(error.message)")
            }
        }
        if forms.count == wanted.count { texts[key] = MessageCatalog.PluralForms(forms: forms, rule: rule) }
    }

    private mutating func takeHeader(_ entry: POEntry) {
        guard texts.isEmpty else { return fault(entry.line, "the header must come first") }
        for line in (entry.strings[0] ?? "").split(separator: "\n") {
            guard let colon = line.firstIndex(of: ":") else { continue }
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            switch line[..<colon].lowercased() {
            case "plural-forms":
                guard let rule = PluralRule(String(value)) else {
                    fault(entry.line, "Plural-Forms must have the form nplurals=2; plural=(n != 1);")
                    continue
                }
                self.rule = rule
            case "content-type":
                guard let charset = value.lowercased().split(separator: "charset=", maxSplits: 1).dropFirst().first,
                    charset.filter({ $0 != "\"" && $0 != " " }) != "utf-8"
                else { continue }
                fault(entry.line, "Content-Type must have charset=UTF-8")
            default: continue
            }
        }
    }

    private mutating func fault(_ line: Int, _ message: String) { faults.append(CatalogFault(path, line, message)) }
}
