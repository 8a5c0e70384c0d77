import Testing

@testable import Templates

@Suite struct TemplateTests {
    private let known: [Placeholder: String] = [.website: "Example", .code: "123456", .minutes: "5"]

    private func write(_ text: String, _ more: [Placeholder: String] = [:], of key: TextKey = .body(.loginCode)) throws
        -> String
    {
        let all = known.merging(more) { _, new in new }
        return try Template(text, of: key).write { all[$0] }
    }

    private func fault(_ text: String, of key: TextKey = .body(.loginCode)) -> String? {
        do throws(Template.Fault) {
            _ = try Template(text, of: key)
            return nil
        } catch { return error.message }
    }

    @Test func lineWithAnUnknownValueIsOmitted() throws {
        let text = "{code}\n\nAddress: {ip}\nPlace: {place}\n\nEnd"
        #expect(try write(text) == "123456\n\nEnd")
        #expect(try write(text, [.place: "Rome"]) == "123456\n\nPlace: Rome\n\nEnd")
        #expect(try write(text, [.ip: "::1", .place: "Rome"]) == "123456\n\nAddress: ::1\nPlace: Rome\n\nEnd")
    }

    @Test func bracketWithAnUnknownValueIsOmitted() throws {
        let text = "{code}[ from {ip}[ in {place}]]."
        #expect(try write(text) == "123456.")
        #expect(try write(text, [.place: "Rome"]) == "123456.")
        #expect(try write(text, [.ip: "::1"]) == "123456 from ::1.")
        #expect(try write(text, [.ip: "::1", .place: "Rome"]) == "123456 from ::1 in Rome.")
    }

    @Test func doubledBracesAndBracketsAreLiteral() throws {
        #expect(try write("[[{{{code}}}]]") == "[{123456}]")
    }

    @Test func valueIsNotExpanded() throws {
        #expect(try write("{code} {website}", [.website: "{ip}[x]"]) == "123456 {ip}[x]")
    }

    @Test(arguments: [
        ("{code} {tpyo}", "must not contain {tpyo}"), ("{code} {device}", "must not contain {device}"),
        ("{code} {", "not closed"), ("{code} {ip", "not closed"), ("{code} {ip\n}", "not closed"),
        ("{code} [{ip}", "not closed"), ("{code} }", "without an opening one"), ("{code} ]", "without an opening one"),
        ("Hello", "must contain {code}"), ("{code} from {ip}", "loses {code}"),
        ("[{code} {place}]", "loses {code}"),
        ("{code}\tx", "control"), ("{code}\u{0}", "control"), ("", "must contain"),
    ])
    func malformedTemplateIsRefused(_ text: String, _ why: String) throws {
        let message = try #require(fault(text))
        #expect(message.contains(why))
    }

    @Test func subjectHasOneLineAndNoCode() throws {
        #expect(try #require(fault("Your code {code}", of: .subject(.loginCode))).contains("mail servers log subjects"))
        #expect(try #require(fault("a\nb", of: .subject(.loginCode))).contains("one line"))
        #expect(try #require(fault("{code}\nb", of: .note(.loginCode))).contains("one line"))
        #expect(try #require(fault("{device}", of: .subject(.deviceBound))).contains("is empty"))
        #expect(fault("New phone[: {device}]", of: .subject(.deviceBound)) == nil)
    }

    @Test func templateLengthAndDepthAreLimited() throws {
        #expect(fault("{code}" + String(repeating: "x", count: 474), of: .note(.loginCode)) == nil)
        #expect(fault("{code}" + String(repeating: "x", count: 475), of: .note(.loginCode)) != nil)
        let deep = String(repeating: "[ ", count: 2000)
        #expect(try #require(fault("{code}" + deep)).contains("nested too deeply"))
    }
}
