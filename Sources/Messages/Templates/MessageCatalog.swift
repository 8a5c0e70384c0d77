/// Everything that mails and text messages say, in all languages there are. Each text is taken in the best language that has
/// it; English has all of them.
public struct MessageCatalog: Sendable {
    /// Of one language.
    struct LanguageTexts: Sendable {
        let language: String
        var texts: [TextKey: PluralForms] = [:]
    }

    /// A text in each of its forms; one alone holds for every number.
    struct PluralForms: Sendable {
        let forms: [Template]
        let rule: PluralRule

        func template(for minutes: Int?) -> Template? {
            forms.count == 1 ? forms.first : forms[min(rule.form(of: minutes ?? 0), forms.count - 1)]
        }
    }

    /// The language that has everything.
    private static let standard = "en"
    /// Of the website's name in a text message, so that the rest has its place in one part.
    private static let nameInNote = 60
    private static let nameInLetter = 128

    /// By their tags in small letters.
    private var words: [String: LanguageTexts]

    /// English and German.
    public static let builtIn: MessageCatalog = {
        do throws(CatalogFaults) {
            return try MessageCatalog(words: [:]).adding(BuiltIn.files)
        } catch {
            preconditionFailure("\(error)")
        }
    }()

    private init(words: [String: LanguageTexts]) { self.words = words }

    /// What an operator has written, over the built-in texts: other languages, and other words. Everything that is wrong is
    /// said at once.
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
                faults.append(CatalogFault(file.path, 1, "is of the same language as \(other)"))
            }
            let read = CatalogReader.read(file)
            faults += read.faults
            let old = words[tag]?.texts ?? [:]
            let all = old.merging(read.texts) { _, new in new }
            for key in TextKey.all where read.texts[key] != nil {
                guard let partner = key.partner, all[partner] == nil else { continue }
                faults.append(
                    CatalogFault(file.path, read.lines[key] ?? 1, "\(key.name) is there, but not \(partner.name)"))
            }
            words[tag] = LanguageTexts(language: language, texts: all)
        }
        guard faults.isEmpty else { throw CatalogFaults(all: faults) }
        return MessageCatalog(words: words)
    }

    /// Those that have something to say.
    public var languages: [String] { words.values.filter { !$0.texts.isEmpty }.map(\.language).sorted() }

    /// `language` is a tag such as `de-AT`, or a whole Accept-Language.
    public func letter(_ letter: MailTemplate, _ values: TemplateValues, language: String?) -> RenderedMail {
        let words = words(having: .body(letter), language)
        let write = { (key: TextKey) in Self.write(words.texts[key], values, name: Self.nameInLetter) }
        return RenderedMail(
            language: words.language, subject: write(.subject(letter)), text: write(.body(letter)) + "\n")
    }

    public func sms(_ note: SMSTemplate, _ values: TemplateValues, language: String?) -> RenderedSMS {
        let words = words(having: .note(note), language)
        return RenderedSMS(
            language: words.language, text: Self.write(words.texts[.note(note)], values, name: Self.nameInNote))
    }

    private func words(having key: TextKey, _ language: String?) -> LanguageTexts {
        let tags = LanguageRanges(language).tags.flatMap { LanguageRanges.fallbacks(of: $0) } + [Self.standard]
        let first = tags.lazy.compactMap { words[$0] }.first { $0.texts[key] != nil }
        return first ?? LanguageTexts(language: Self.standard)
    }

    private static func write(_ worded: PluralForms?, _ values: TemplateValues, name: Int) -> String {
        worded?.template(for: values.minutes)?.write { values.text(of: $0, nameCharacters: name) } ?? ""
    }
}

/// A mail. It prints nothing of itself, because it may hold a code.
public struct RenderedMail: Sendable, CustomStringConvertible, CustomReflectable {
    /// The tag of the language it is in.
    public let language: String
    /// One line.
    public let subject: String
    /// Every line ends with a line feed.
    public let text: String

    public var description: String { "[words]" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// A text message, in one line. It prints nothing of itself, because it holds a code.
public struct RenderedSMS: Sendable, CustomStringConvertible, CustomReflectable {
    public let language: String
    public let text: String

    public var description: String { "[words]" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
