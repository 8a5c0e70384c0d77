import Bytes
import GSM
import Testing

@testable import Templates

/// The length of text messages, which are billed by the segment.
@Suite struct SMSTemplateLengthTests {
    @Test(arguments: ["en", "de"], SMSTemplate.allCases)
    func smsFitsOneSegmentForAnyWebsiteName(_ language: String, _ note: SMSTemplate) {
        for minutes in [1, 10] {
            let values = TemplateValues(
                website: String(repeating: "W", count: 128), code: Secret(utf8: "12345678"), minutes: minutes,
                ip: "2001:db8:1234:5678:9abc:def0:1234:5678", place: String(repeating: "p", count: 100), service: "s")
            let size = TextSize(MessageCatalog.builtIn.sms(note, values, language: language).text)
            #expect(size.coding == .gsm7)
            #expect(size.parts == 1, "\(size.units)")
        }
    }
}
