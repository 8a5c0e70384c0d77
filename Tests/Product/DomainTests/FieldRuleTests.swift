import Testing

@testable import Domain

@Suite struct FieldRuleTests {
    @Test(arguments: ["a", "Ada Lovelace", "bob@example.com", "日本語", String(repeating: "x", count: 64), "👩💻"])
    func commonNamesAreAccepted(name: String) {
        #expect(FieldRule.username(name) == nil)
    }

    @Test(arguments: [
        "", String(repeating: "x", count: 65), "a\u{0}b", "a\nb", "\u{7f}", "a\u{202E}b", "a\u{2066}b", "a\u{200F}",
        "a\u{2028}b", "\u{E000}",
    ])
    func namesWithHiddenCharactersAreRefused(name: String) {
        #expect(FieldRule.username(name) != nil)
    }

    /// The first and the last character of every range of invisible characters.
    @Test(
        arguments: [
            0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180F, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F,
            0x2028, 0x202E, 0x2060, 0x206F, 0x3164, 0xFE00, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF0, 0xFFF9, 0xFFFB, 0x1BCA0,
            0x1BCA3,
            0x1D173, 0x1D17A, 0xE0000, 0xE0001, 0xE0020, 0xE007F, 0xE0100, 0xE01EF, 0xE0FFF,
        ] as [UInt32])
    func invisibleCharacterIsNamedByCodePoint(value: UInt32) throws {
        let text = "ada\(Character(try #require(Unicode.Scalar(value))))"
        let number = String(value, radix: 16, uppercase: true)
        let name = "U+" + String(repeating: "0", count: max(0, 4 - number.count)) + number
        for message in [FieldRule.username(text), FieldRule.line(text, limit: 128)] {
            #expect(message?.english.hasSuffix("it contains \(name)") == true)
            #expect(message?.german.hasSuffix("enthält aber \(name)") == true)
        }
    }

    /// Combining marks, other scripts and symbols are visible, and are accepted.
    @Test(arguments: ["Zoe\u{308}", "नमस्ते", "שלום", "ﷺ", "a\u{A0}b", "€", "𝒜", "\u{2800}"])
    func visibleCharactersAreAccepted(name: String) {
        #expect(FieldRule.username(name) == nil)
    }

    @Test(arguments: ["a@example.com", "first.last+tag@mail.example.org", "x@1and1.example", "o'neil@example.ie"])
    func validEmailAddressesAreAccepted(address: String) {
        #expect(FieldRule.email(address) == nil)
    }

    @Test(arguments: [
        "", "a", "a@", "@example.com", "a@b", "a@@example.com", "a b@example.com", ".a@example.com", "a.@example.com",
        "a..b@example.com", "a@-example.com", "a@example-.com", "a@example..com", "a\r\nBcc: x@example.com",
        "\"a\"@example.com", "ä@example.com", String(repeating: "a", count: 65) + "@example.com",
        "a@" + String(repeating: "b.", count: 130) + "com",
    ])
    func malformedEmailAddressesAreRefused(address: String) {
        #expect(FieldRule.email(address) != nil)
    }

    @Test(arguments: ["+4915112345678", "+12025550123", "+2991234567"])
    func validPhoneNumbersAreAccepted(number: String) {
        #expect(FieldRule.phone(number) == nil)
    }

    @Test(arguments: [
        "", "4915112345678", "+0491511234567", "+49 151 1234567", "+1234567890123456", "+12345", "+١٢٣٤٥٦٧",
    ])
    func malformedPhoneNumbersAreRefused(number: String) {
        #expect(FieldRule.phone(number) != nil)
    }

    @Test(arguments: ["203.0.113.7", "0.0.0.0", "2001:db8::1", "::", "1:2:3:4:5:6:7:8", "::ffff:192.0.2.1"])
    func validIPAddressesAreAccepted(ip: String) {
        #expect(FieldRule.ip(ip) == nil)
    }

    @Test(arguments: [
        "", "256.0.0.1", "1.2.3", "1.2.3.4.5", "example.com", "2001:db8::g", "1.2.3.4 ", "<b>", "10.0.0.1:5555",
        "010.0.0.1", "10.0.0.01", "[2001:db8::1]", "fe80::1%eth0", "1::2::3", "1:2:3", "::1:99999", "127.1",
        "1.2.3.4\0",
    ])
    func malformedIPAddressesAreRefused(ip: String) {
        #expect(FieldRule.ip(ip) != nil)
    }

    @Test func websiteNamesAreSafeInFilesAndCertificates() {
        for name in ["shop", "shop.example.com", "a-1", "1"] { #expect(FieldRule.websiteName(name) == nil) }
        for name in ["", "Shop", ".shop", "-a", "a/b", "a:b", "..", "ä", String(repeating: "a", count: 65)] {
            #expect(FieldRule.websiteName(name) != nil, "\(name)")
        }
    }

    @Test func languageTagsAndListsAreChecked() {
        for tag in ["en", "de-AT", "zh-Hant-TW"] { #expect(FieldRule.language(tag) == nil) }
        for tag in ["", "e", "en_US", "en-", "-en", "123", "en-ABCDEFGHI"] { #expect(FieldRule.language(tag) != nil) }
        // As browsers send them.
        for list in ["de-AT, de;q=0.8, en-US;q=0.5, *;q=0", "en,de ; q=0.123", "fr;q=1.000", "en\t,\tde;Q=1"] {
            #expect(FieldRule.language(list) == nil, "\(list)")
        }
        for list in [
            "de,", ",de", "de;", "de;q", "de;q=", "de;q=2", "de;q=0.1234", "de;q=1.1", "de;q=0,5", "de;q=.5", "de;q=01",
            "de;level=1", "de;q=0.5;x=1", "de en", "de\r\nBcc: a@example.org",
        ] {
            #expect(FieldRule.language(list) != nil, "\(list)")
        }
    }
}
