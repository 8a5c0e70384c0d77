import Bytes
import Testing
import World

@testable import Templates

/// The link to the account in mails.
struct AccountLinkTextTests {
    /// As long as a real one, and longer than any other value.
    private static let link = "https://phone.example.com/phone/#account=" + String(repeating: "x", count: 400)
    private static let without: [MailTemplate] = [.addressCode, .activation, .recoveryLink, .recoveryWaiting]

    private func values(hasLink: Bool) -> TemplateValues {
        TemplateValues(
            website: "Shop", code: Secret(utf8: "012345"), link: Secret(utf8: "twoefay://enrol?code=012345"),
            minutes: 5,
            device: "Phone", time: Timestamp(rfc3339: "2026-11-22T01:02:03.456Z"), lost: .token,
            account: hasLink ? Secret(utf8: Self.link) : nil)
    }

    @Test(arguments: ["en", "de"], MailTemplate.allCases)
    func builtInTextHasTheLinkAtTheEndOfALine(language: String, letter: MailTemplate) {
        let linked = MessageCatalog.builtIn.letter(letter, values(hasLink: true), language: language)
        let plain = MessageCatalog.builtIn.letter(letter, values(hasLink: false), language: language)
        #expect(linked.text.contains(" \(Self.link)\n") != Self.without.contains(letter))
        #expect(linked.subject == plain.subject && !linked.subject.contains("account="))
        // Without a link, its line is left out, and nothing else.
        let lines = linked.text.split(separator: "\n").filter { !$0.hasSuffix(Self.link) }
        #expect(lines == plain.text.split(separator: "\n"))
        #expect(!plain.text.hasSuffix("\n\n") && !plain.text.contains("\n\n\n"))
    }

    @Test func linkStandsInNoSubjectAndInNoCodeOfAnAddress() {
        func faults(_ key: String) -> [String] {
            let text = "msgctxt \"\(key)\"\nmsgid \"x\"\nmsgstr \"{code} {account}\"\n"
            do throws(CatalogFaults) {
                _ = try MessageCatalog([CatalogFile(path: "de.po", bytes: Array(text.utf8))])
                return []
            } catch { return error.all.map(\.description) }
        }
        #expect(faults("mail.login.text") != [], "a code must not be lost with the link")
        #expect(faults("mail.address.text").contains { $0.contains("{account}") })
        #expect(faults("sms.login").contains { $0.contains("{account}") })
        let subject = "msgctxt \"mail.user.frozen.subject\"\nmsgid \"x\"\nmsgstr \"{website} {account}\"\n"
        #expect(throws: CatalogFaults.self) {
            _ = try MessageCatalog([CatalogFile(path: "de.po", bytes: Array(subject.utf8))])
        }
    }
}
