/// The texts of mails and text messages in all languages. Each text is taken from the best language
/// that has it; English has all of them.
public struct MessageCatalog: Sendable {
    /// The texts of one language.
    struct LanguageTexts: Sendable {
        let language: String
        var texts: [TextKey: PluralForms] = [:]
    }

    /// A text in its plural forms; a single form serves for every number.
    struct PluralForms: Sendable {
        let forms: [Template]
        let rule: PluralRule

        func template(for minutes: Int?) -> Template? {
            forms.count == 1 ? forms.first : forms[min(rule.form(of: minutes ?? 0), forms.count - 1)]
        }
    }

    /// The language that has all texts.
    private static let standard = "en"
    /// The maximum length of the website's name in a text message, so that the rest fits into one
    /// segment.
    private static let nameInNote = 60
    private static let nameInLetter = 128

    /// The texts by language tag in lower case.
    private var words: [String: LanguageTexts]

    /// The built-in texts in English and German.
    public static let builtIn: MessageCatalog = {
        do throws(CatalogFaults) {
            return try MessageCatalog(words: [:]).adding(BuiltIn.files)
        } catch {
            preconditionFailure("\(error)")
        }
    }()

    private init(words: [String: LanguageTexts]) { self.words = words }

    /// Creates a catalogue from an operator's files over the built-in texts. The files may add
    /// languages and replace texts. All errors are reported at once.
    public init(_ files: [CatalogFile]) throws(CatalogFaults) { self = try Self.builtIn.adding(files) }

    private func adding(_ files: [CatalogFile]) throws(CatalogFaults) -> MessageCatalog {
        var (words, faults) = (words, [CatalogFault]())
        var seen: [String: String] = [:]
        for file in files {
            guard let language = file.language else {
                faults.append(
                    CatalogFault(file.path, 1, "must be named after its language, such as fr.po or pt-BR.po"))
                continue
            }
            let tag = language.lowercased()
            if let other = seen.updateValue(file.path, forKey: tag) {
                faults.append(CatalogFault(file.path, 1, "has the same language as \(other)"))
            }
            let read = CatalogReader.read(file)
            faults += read.faults
            let old = words[tag]?.texts ?? [:]
            let all = old.merging(read.texts) { _, new in new }
            for key in TextKey.all where read.texts[key] != nil {
                guard let partner = key.partner, all[partner] == nil else { continue }
                faults.append(
                    CatalogFault(file.path, read.lines[key] ?? 1, "\(key.name) also needs \(partner.name)"))
            }
            words[tag] = LanguageTexts(language: language, texts: all)
        }
        guard faults.isEmpty else { throw CatalogFaults(all: faults) }
        return MessageCatalog(words: words)
    }

    /// The languages that have at least one text.
    public var languages: [String] { words.values.filter { !$0.texts.isEmpty }.map(\.language).sorted() }

    /// Renders a mail.
    ///
    /// - Parameter language: a tag such as `de-AT`, or an Accept-Language value.
    public func letter(_ letter: MailTemplate, _ values: TemplateValues, language: String?) -> RenderedMail {
        let words = words(having: .body(letter), language)
        var values = values
        values.lostName = values.lost.map { name(of: $0, words) }
        let write = { [values] (key: TextKey) in Self.write(words.texts[key], values, name: Self.nameInLetter) }
        return RenderedMail(
            language: words.language, subject: write(.subject(letter)), text: write(.body(letter)) + "\n")
    }

    /// Renders a text message.
    ///
    /// - Parameter language: a tag such as `de-AT`, or an Accept-Language value.
    public func sms(_ note: SMSTemplate, _ values: TemplateValues, language: String?) -> RenderedSMS {
        let words = words(having: .note(note), language)
        return RenderedSMS(
            language: words.language, text: Self.write(words.texts[.note(note)], values, name: Self.nameInNote))
    }

    /// Returns the name of a factor in the language of a mail, or else the English one.
    private func name(of factor: LostFactor, _ words: LanguageTexts) -> String {
        let texts = words.texts[.name(factor)] ?? self.words[Self.standard]?.texts[.name(factor)]
        return Self.write(texts, TemplateValues(website: ""), name: Self.nameInLetter)
    }

    private func words(having key: TextKey, _ language: String?) -> LanguageTexts {
        let tags = (language.map { LanguagePreference.tags($0) } ?? []) + [Self.standard]
        let first = tags.lazy.compactMap { words[$0] }.first { $0.texts[key] != nil }
        return first ?? LanguageTexts(language: Self.standard)
    }

    private static func write(_ worded: PluralForms?, _ values: TemplateValues, name: Int) -> String {
        worded?.template(for: values.minutes)?.write { values.text(of: $0, nameCharacters: name) } ?? ""
    }
}

/// A rendered mail. It does not print its contents, because it may hold a code.
public struct RenderedMail: Sendable, CustomStringConvertible, CustomReflectable {
    /// The tag of its language.
    public let language: String
    /// The subject, a single line.
    public let subject: String
    /// The text; every line ends with a line feed.
    public let text: String

    public var description: String { "[words]" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// A rendered text message, a single line. It does not print its contents, because it holds a code.
public struct RenderedSMS: Sendable, CustomStringConvertible, CustomReflectable {
    public let language: String
    public let text: String

    public var description: String { "[words]" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
