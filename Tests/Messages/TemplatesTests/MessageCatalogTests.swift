import Bytes
import Testing
import World

@testable import Templates

@Suite struct MessageCatalogTests {
    private let values = TemplateValues(
        website: "Bücher & Mehr", code: Secret(utf8: "012345"), link: Secret(utf8: "twoefay://enrol?code=012345"),
        minutes: 5, ip: "203.0.113.7", place: "Köln",
        service: "Kasse", device: "Telefon", time: Timestamp(rfc3339: "2026-11-22T01:02:03.456Z"), lost: .token)

    private func file(_ name: String, _ text: String) -> CatalogFile {
        CatalogFile(path: name, bytes: Array(text.utf8))
    }

    private func entry(_ key: String, _ text: String) -> String {
        "msgctxt \"\(key)\"\nmsgid \"x\"\nmsgstr \"\(text)\"\n\n"
    }

    private func faults(_ files: CatalogFile...) -> [String] {
        do throws(CatalogFaults) {
            _ = try MessageCatalog(files)
            return []
        } catch { return error.all.map(\.description) }
    }

    // MARK: The built-in texts

    @Test(arguments: ["en", "de"])
    func bothLanguagesHaveEveryText(_ language: String) {
        for letter in MailTemplate.allCases {
            let worded = MessageCatalog.builtIn.letter(letter, values, language: language)
            #expect(worded.language == language)
            #expect(worded.subject.contains("Bücher & Mehr"))
            #expect(!worded.subject.contains("\n"))
            #expect(worded.text.hasSuffix("\n") && !worded.text.contains("{"))
            #expect(!worded.subject.contains("012345"))
            switch letter {
            case .loginCode:
                for part in ["012345", "5 Minut|5 minut", "203.0.113.7", "Köln", "Kasse"] {
                    #expect(part.split(separator: "|").contains { worded.text.contains($0) }, "\(part)")
                }
            case .addressCode: #expect(worded.text.contains("012345"))
            case .activation:
                for part in ["012345", "twoefay://enrol?code=012345", "5 Minut|5 minut"] {
                    #expect(part.split(separator: "|").contains { worded.text.contains($0) }, "\(part)")
                }
            case .deviceBound, .deviceUnbound, .pinLocked, .pinChanged, .pukLocked, .unlockIssued, .secretDelivered,
                .deviceCertified:
                #expect(worded.text.contains("Telefon") && worded.text.contains("2026-11-22 01:02 UTC"))
            case .recoveryLink:
                for part in ["\ntwoefay://enrol?code=012345\n", "5 Minut|5 minut"] {
                    #expect(part.split(separator: "|").contains { worded.text.contains($0) }, "\(part)")
                }
            case .recoveryWaiting:
                #expect(worded.text.contains("\ntwoefay://enrol?code=012345\n"))
                #expect(worded.text.contains("\n2026-11-22 01:02 UTC\n"))
                #expect(worded.text.contains(language == "en" ? ": your hardware token. " : ": Ihr Hardware-Token. "))
            case .userFrozen, .userLocked, .codesLocked, .temporaryIssued, .temporaryUsed, .recoveryDone,
                .recoveryCancelled:
                #expect(worded.text.contains("2026-11-22 01:02 UTC"))
            }
        }
    }

    @Test func minutesUsePluralForms() {
        var one = values
        one.minutes = 1
        let note = { (values: TemplateValues, language: String) in
            MessageCatalog.builtIn.sms(.loginCode, values, language: language).text
        }
        #expect(note(one, "en").contains("for 1 minute."))
        #expect(note(values, "en").contains("for 5 minutes."))
        #expect(note(one, "de").contains("1 Minute gültig"))
        #expect(note(values, "de").contains("5 Minuten gültig"))
        #expect(TemplateValues.minutes(left: .seconds(299)) == 4)
        #expect(TemplateValues.minutes(left: .seconds(59)) == 1)
        #expect(TemplateValues.minutes(left: .seconds(-5)) == 1)
    }

    @Test func renderedMessagesDoNotPrint() {
        let letter = MessageCatalog.builtIn.letter(.loginCode, values, language: nil)
        let note = MessageCatalog.builtIn.sms(.loginCode, values, language: nil)
        var dumped = ""
        dump(letter, to: &dumped)
        dump(note, to: &dumped)
        #expect(!"\(letter)\(note)\(dumped)".contains("012345"))
    }

    // MARK: Values

    @Test func valueCannotInsertLineBreaks() {
        var bad = values
        bad.website = "Evil\r\nBcc: all@example.com\u{2028}\u{202e}\u{0}x"
        let letter = MessageCatalog.builtIn.letter(.loginCode, bad, language: "en")
        #expect(letter.subject == "Your login code for Evil Bcc: all@example.com x")
        #expect(!letter.text.contains("\r") && !letter.text.contains("\u{202e}"))
        bad.website = "\n"
        #expect(MessageCatalog.builtIn.letter(.loginCode, bad, language: "en").subject == "Your login code for ?")
    }

    @Test func longNamesAreTruncated() {
        var long = values
        long.website = String(repeating: "ä", count: 500)
        let note = MessageCatalog.builtIn.sms(.addressCode, long, language: "en").text
        #expect(note.contains(String(repeating: "ä", count: 57) + "..., valid"))
        #expect(MessageCatalog.builtIn.letter(.loginCode, long, language: "en").subject.count < 160)
    }

    @Test func unknownValuesAreOmitted() {
        let bare = TemplateValues(website: "Example", code: Secret(utf8: "1"), minutes: 5, ip: "", place: " ")
        let text = MessageCatalog.builtIn.letter(.loginCode, bare, language: "en").text
        for word in ["Service", "IP address", "Place", "\n\n\n"] { #expect(!text.contains(word)) }
    }

    // MARK: Languages

    @Test(arguments: [
        ("de", "de"), ("de-AT", "de"), ("DE-at-1996", "de"), ("fr", "en"), (nil, "en"), ("xx;;", "en"),
        ("fr-CH, fr;q=0.9, de;q=0.8, en;q=0.7", "de"), ("en-GB", "en"),
    ])
    func bestLanguageIsChosen(_ asked: String?, _ found: String) {
        #expect(MessageCatalog.builtIn.sms(.loginCode, values, language: asked).language == found)
    }

    @Test func catalogFileAddsALanguage() throws {
        let polish =
            """
            msgid ""
            msgstr "Content-Type: text/plain; charset=utf-8\\n"
            "Plural-Forms: nplurals=3; plural=n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2;\\n"

            # by somebody
            msgctxt "sms.login"
            msgid "{code} is your login code for {website}, valid for {minutes} minute. Do not share it."
            msgid_plural "…"
            msgstr[0] "{code} – kod do {website}, ważny {minutes} minutę."
            msgstr[1] "{code} – kod do {website}, ważny "
            "{minutes} minuty."
            msgstr[2] "{code} – kod do {website}, ważny {minutes} minut."
            """
        let wording = try MessageCatalog([file("/etc/words/pl.po", polish)])
        #expect(wording.languages == ["de", "en", "pl"])
        var values = values
        let said = { (minutes: Int) in
            values.minutes = minutes
            return wording.sms(.loginCode, values, language: "pl-PL").text
        }
        #expect(said(1) == "012345 – kod do Bücher & Mehr, ważny 1 minutę.")
        #expect(said(3) == "012345 – kod do Bücher & Mehr, ważny 3 minuty.")
        #expect(said(5) == "012345 – kod do Bücher & Mehr, ważny 5 minut.")
        // A text that the file lacks comes from the next language that has it.
        #expect(wording.letter(.loginCode, values, language: "pl, de;q=0.5").language == "de")
        #expect(wording.letter(.loginCode, values, language: "pl").language == "en")
    }

    @Test func catalogFileOverridesBuiltInTexts() throws {
        let wording = try MessageCatalog([
            file("de.po", entry("mail.login.subject", "Code von {website}")),
            file("de_AT.po", entry("sms.login", "Servus, {code}")),
        ])
        let letter = wording.letter(.loginCode, values, language: "de-AT")
        #expect(letter.subject == "Code von Bücher & Mehr")
        #expect(letter.text.contains("Ihr Code für die Anmeldung"))
        #expect(wording.sms(.loginCode, values, language: "de-AT").text == "Servus, 012345")
        #expect(wording.sms(.loginCode, values, language: "de-CH").language == "de")
    }

    @Test func untranslatedTextFallsBack() throws {
        let wording = try MessageCatalog([
            file("de.po", "#, fuzzy\n" + entry("sms.login", "Falsch {code}") + entry("sms.address", "")),
            file("fr.po", ""),
        ])
        #expect(wording.sms(.loginCode, values, language: "de").text.contains("Anmeldecode"))
        #expect(wording.sms(.addressCode, values, language: "de").text.contains("bestätigt"))
        #expect(wording.languages == ["de", "en"])
    }

    // MARK: Refused catalogues

    @Test(arguments: [
        ("msgctxt \"sms.login\"\nmsgid \"x\"\nmsgstr \"Hello\"\n", "fr.po:1: sms.login must contain {code}"),
        (
            "\n# c\nmsgctxt \"sms.logni\"\nmsgid \"x\"\nmsgstr \"y\"",
            "fr.po:3: sms.logni is not the name of a text; did you mean sms.login?"
        ),
        ("msgid \"x\"\nmsgstr \"y\"", "fr.po:1: has no msgctxt"),
        ("msgctxt \"sms.login\"\nmsgid \"x\"\n", "fr.po:1: has no msgstr"),
        ("msgctxt \"sms.login\"\nmsgstr \"x\"\n", "fr.po:1: has no msgid"),
        ("msgctxt \"sms.login\"\nmsgid \"x\"\nmsgstr {code}\n", "fr.po:3: a text must be in quotes"),
        ("msgctxt \"sms.login\"\nmsgid \"x\"\nmsgstr \"{code}\n", "fr.po:3: a text must be in quotes"),
        ("msgctxt \"sms.login\"\nmsgid \"x\"\nmsgstr \"a\"b\"\n", "fr.po:3: a quote inside a text"),
        ("msgctxt \"sms.login\"\nmsgid \"x\"\nmsgstr \"\\x\"\n", "fr.po:3: after a backslash only"),
        ("\"x\"\n", "fr.po:1: a text must follow msgctxt"), ("msgfoo \"x\"\n", "fr.po:1: msgfoo is neither"),
        ("msgctxt \"sms.login\"\nmsgid \"x\"\nmsgstr[12] \"x\"\n", "fr.po:3: msgstr[12] is neither"),
        ("msgctxt \"sms.login\"\nmsgid \"x\"\nmsgid \"x\"\n", "fr.po:3: msgid appears twice"),
        (
            "msgctxt \"sms.login\"\nmsgid \"x\"\nmsgid_plural \"x\"\nmsgstr[0] \"{code}\"\n",
            "fr.po:1: sms.login must have all of msgstr[0], msgstr[1]"
        ),
        (
            "msgctxt \"mail.login.text\"\nmsgid \"x\"\nmsgstr \"{code}\"\n",
            "fr.po:1: mail.login.text also needs mail.login.subject"
        ),
        (
            "msgctxt \"mail.user.locked.subject\"\nmsgid \"x\"\nmsgid_plural \"x\"\nmsgstr[0] \"a\"\nmsgstr[1] \"a\"\n",
            "fr.po:1: mail.user.locked.subject has no plural"
        ),
        ("msgid \"\"\nmsgstr \"Plural-Forms: nonsense\\n\"\n", "fr.po:1: Plural-Forms must have the form"),
        ("msgid \"\"\nmsgstr \"Content-Type: text/plain; charset=ISO-8859-1\\n\"\n", "fr.po:1: Content-Type must have"),
        (
            "msgctxt \"sms.login\"\nmsgid \"x\"\nmsgstr \"{code}\"\nmsgctxt \"sms.login\"\nmsgid \"x\"\nmsgstr \"{code}\"\n",
            "fr.po:4: sms.login appears twice"
        ),
    ])
    func malformedCatalogFileIsRefused(_ text: String, _ message: String) throws {
        let all = faults(file("fr.po", text))
        #expect(all.count == 1)
        #expect(try #require(all.first).hasPrefix(message))
    }

    @Test func misnamedOrInvalidFileIsRefused() {
        #expect(faults(file("words/french-words.txt", "")).map { $0.prefix(23) } == ["words/french-words.txt:"])
        #expect(faults(file("a.po", "")).count == 1)
        #expect(
            faults(file("pt-BR.po", ""), file("pt_BR.po", "")) == ["pt_BR.po:1: has the same language as pt-BR.po"])
        #expect(faults(CatalogFile(path: "fr.po", bytes: Array("# a\n# ".utf8) + [0xff])) == ["fr.po:2: is not UTF-8"])
    }

    @Test func allCatalogFaultsAreReported() {
        let all = faults(
            file("fr.po", entry("sms.login", "a") + entry("sms.address", "b")), file("it.po", entry("sms.login", "c")))
        #expect(all.map { $0.prefix(8) } == ["fr.po:1:", "fr.po:5:", "it.po:1:"])
    }

    @Test func crlfLineEndsAreAccepted() throws {
        let text = "msgctxt \"sms.login\"\r\nmsgid \"x\"\r\nmsgstr \"Bonjour {code}\"\r\n"
        let wording = try MessageCatalog([file("fr.po", "\u{feff}" + text)])
        #expect(wording.sms(.loginCode, values, language: "fr").text == "Bonjour 012345")
    }

    @Test func currentCatalogReturnsTheLatest() throws {
        let book = CurrentCatalog()
        book.replace(try MessageCatalog([file("fr.po", entry("sms.login", "Bonjour {code}"))]))
        #expect(book.current.languages == ["de", "en", "fr"])
    }
}
