import Testing

@testable import Templates

@Suite struct LanguageTests {
    /// The orders follow from RFC 9110 §12.4.2 and §12.5.4.
    @Test(arguments: [
        ("de-AT", ["de-at"]), ("da, en-gb;q=0.8, en;q=0.7", ["da", "en-gb", "en"]),
        ("en;q=0.5, de", ["de", "en"]), ("en ; q=0.5 ,de;q=0.501", ["de", "en"]), ("fr;q=0, de", ["de"]),
        ("*;q=0.1, de;q=0.1", ["de"]), ("en, de", ["en", "de"]), ("de;q=1.000", ["de"]),
        ("", []), ("de;q=2", []), ("de;q=x", []), ("de;q=0.1234", []), ("de;q=1.1", []), ("de;level=1", []),
        ("d", []), ("de_DE", []), ("toolonglanguage", []), ("de--at", []), ("ä", []), (",,,de", ["de"]),
        ("de;q=0.5;q=1", []), ("de;q=+1", []), ("de;q=", []),
    ])
    func acceptLanguageIsParsed(_ text: String, _ tags: [String]) { #expect(LanguageRanges(text).tags == tags) }

    @Test func languageRangesAreLimited() {
        #expect(LanguageRanges(String(repeating: "de,", count: 171)).tags == [])
        let many = (0..<30).map { "a\(Character(Unicode.Scalar(UInt8(0x61 + $0 % 26))))" }.joined(separator: ",")
        #expect(LanguageRanges(many).tags.count == 16)
    }

    @Test func tagsIncludeTheirShorterForms() {
        #expect(LanguagePreference.tags("fr;q=0.2, de-AT") == ["de-at", "de", "fr"])
        #expect(LanguagePreference.tags("*") == [])
    }

    /// The example of RFC 4647 §3.4.
    @Test func languageFallbackFollowsRFC4647() {
        #expect(
            LanguageRanges.fallbacks(of: "zh-hant-cn-x-private1-private2") == [
                "zh-hant-cn-x-private1-private2", "zh-hant-cn-x-private1", "zh-hant-cn", "zh-hant", "zh",
            ])
    }
}
