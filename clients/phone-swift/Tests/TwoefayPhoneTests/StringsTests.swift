import Foundation
import Testing
import TwoefayPhone

/// The strings files that an app copies.
struct StringsTests {
    private func strings(_ language: String) throws -> [String: String] {
        let file = ProtocolPage.directory.appending(
            path: "clients/phone-swift/Strings/\(language).lproj/Localizable.strings")
        var strings: [String: String] = [:]
        for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") where !line.hasPrefix("/*") {
            let parts = line.split(separator: "\"", omittingEmptySubsequences: false)
            try #require(parts.count == 5 && parts[2] == " = " && parts[4] == ";", "\(line)")
            #expect(strings.updateValue(String(parts[3]), forKey: String(parts[1])) == nil, "\(line)")
        }
        return strings
    }

    @Test(arguments: ["en", "de"]) func everyKeyOfThePageHasAText(language: String) throws {
        let page = try ProtocolPage("device-protocol.md")
        let strings = try strings(language)
        // The row of the table has the ends of the keys.
        let row = try #require(page.text.split(separator: "\n").first { $0.hasPrefix("| `TWOEFAY_LOGIN_SERVICE`") })
        let ends = row.split(separator: "`").filter { $0.hasPrefix("…") }.map { "TWOEFAY_LOGIN" + $0.dropFirst() }
        #expect(ends.count == 6)
        #expect(Set(strings.keys) == Set(ends + ["TWOEFAY_TITLE", "TWOEFAY_LOGIN", "TWOEFAY_LOGIN_SERVICE"]))
        for (key, text) in strings {
            let values = key.split(separator: "_").filter { ["SERVICE", "PLACE", "IP"].contains($0) }.count
            for index in 1...3 { #expect(text.contains("%\(index)$@") == (index <= values), "\(key)") }
        }
        for name in ["push payload", "minimal push payload"] {
            let alert = try #require(try page.members(name)["aps"]?.object?["alert"]?.object)
            #expect(strings[try #require(alert["loc-key"]?.string)] != nil)
        }
    }
}
