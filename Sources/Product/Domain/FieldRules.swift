import Bytes
import Glibc

/// Validation rules for texts from outside. Each rule returns an error message, or nil if the text
/// is valid. Messages about parameters of the API have all its languages.
public enum FieldRule {
    /// Checks a line of text for display: 1 to `limit` characters, all of them visible (see
    /// `Unicode.Scalar.isUnshowable`).
    public static func line(_ text: String, limit: Int) -> LocalizedText? {
        if text.isEmpty { return empty }
        if text.unicodeScalars.count > limit { return tooLong(limit) }
        guard let hidden = text.unicodeScalars.first(where: \.isUnshowable) else { return nil }
        let name = name(of: hidden)
        return LocalizedText(
            "must not contain control, text-direction or invisible characters: it contains \(name)",
            de:
                "darf keine Steuerzeichen, Schreibrichtungszeichen oder unsichtbaren Zeichen enthalten, enthält aber \(name)"
        )
    }

    public static let empty = LocalizedText("must not be empty", de: "darf nicht leer sein")

    public static func tooLong(_ limit: Int) -> LocalizedText {
        LocalizedText("must have at most \(limit) characters", de: "darf höchstens \(limit) Zeichen haben")
    }

    public static func username(_ text: String) -> LocalizedText? { line(text, limit: 64) }

    /// Checks that SMTP can carry the address: a dot-atom, an at sign, a host name. Quoted local
    /// parts are refused, since practically nobody has one.
    public static func email(_ text: String) -> LocalizedText? {
        let message = LocalizedText(
            "must be an e-mail address such as name@example.com",
            de: "muss eine E-Mail-Adresse wie name@example.com sein")
        guard text.utf8.count <= 254 else { return tooLong(254) }
        let parts = text.utf8.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
        guard parts.count == 2, (1...64).contains(parts[0].count) else { return message }
        let atoms = parts[0].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard atoms.allSatisfy({ !$0.isEmpty && $0.allSatisfy(isAtomCharacter) }) else { return message }
        let labels = parts[1].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard labels.count >= 2, labels.allSatisfy(isHostLabel) else { return message }
        return nil
    }

    /// Checks a number in E.164 form: a plus sign, a country code that does not start with 0, 7 to
    /// 15 digits in total.
    public static func phone(_ text: String) -> LocalizedText? {
        let digits = text.utf8.dropFirst()
        guard text.utf8.first == UInt8(ascii: "+"), (7...15).contains(digits.count),
            digits.allSatisfy({ (0x30...0x39).contains($0) }), digits.first != UInt8(ascii: "0")
        else {
            return LocalizedText(
                "must be a number in E.164 form such as +4915112345678",
                de: "muss eine Nummer in der Form E.164 wie +4915112345678 sein")
        }
        return nil
    }

    /// Checks a language tag or an Accept-Language value (RFC 9110 §12.5.4): several tags, each
    /// optionally with a weight.
    public static func language(_ text: String) -> LocalizedText? {
        let right = text.split(separator: ",", omittingEmptySubsequences: false).allSatisfy { range in
            let parts = range.split(separator: ";", maxSplits: 1, omittingEmptySubsequences: false)
                .map { trimmed($0.utf8) }
            guard let tag = parts.first, isLanguageTag(tag) || tag.elementsEqual("*".utf8) else { return false }
            return parts.dropFirst().allSatisfy(isWeight)
        }
        return right
            ? nil
            : LocalizedText(
                "must be a language tag such as en or de-AT, or several such as de-AT, de;q=0.8",
                de: "muss ein Sprachkürzel wie en oder de-AT sein, oder mehrere wie de-AT, de;q=0.8")
    }

    private static func trimmed(_ text: Substring.UTF8View) -> Substring.UTF8View {
        let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        var rest = text.drop(while: isBlank)
        while let last = rest.last, isBlank(last) { rest.removeLast() }
        return rest
    }

    /// Returns whether the text has the form of RFC 5646: letters and digits in groups of at most
    /// eight.
    private static func isLanguageTag(_ text: Substring.UTF8View) -> Bool {
        let groups = text.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        return text.count <= 35
            && groups.allSatisfy { (1...8).contains($0.count) && $0.allSatisfy(isLetterOrDigit) }
            && groups.first.map { $0.count >= 2 && $0.allSatisfy(isLetter) } == true
    }

    /// Returns whether the text is a weight such as `q=0.8`: 0 to 1 with at most three decimals.
    private static func isWeight(_ text: Substring.UTF8View) -> Bool {
        guard text.count >= 3, text.starts(with: "q=".utf8) || text.starts(with: "Q=".utf8) else { return false }
        let number = text.dropFirst(2)
        let behind = number.dropFirst(2)
        guard let whole = number.first, whole == UInt8(ascii: "0") || whole == UInt8(ascii: "1"),
            number.dropFirst().first.map({ $0 == UInt8(ascii: ".") }) != false, behind.count <= 3
        else { return false }
        let digits = whole == UInt8(ascii: "1") ? UInt8(ascii: "0")...UInt8(ascii: "0") : 0x30...0x39
        return behind.allSatisfy(digits.contains)
    }

    /// Checks the name of a website, as used in its certificate, in files and in logs.
    public static func websiteName(_ text: String) -> String? {
        let right =
            (1...64).contains(text.utf8.count) && text.utf8.first.map(isLetterOrDigit) == true
            && text.utf8.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".") }
            && text == text.lowercased()
        return right ? nil : "must be 1 to 64 characters of a-z, 0-9, dot and dash, and begin with a letter or digit"
    }

    /// Checks an IPv4 or IPv6 address: without a port, a zone, or leading zeros, which some programs
    /// read as octal.
    public static func ip(_ text: String) -> LocalizedText? {
        var bytes = in6_addr()
        let isAddress =
            !text.utf8.contains(0) && [AF_INET, AF_INET6].contains { inet_pton($0, text, &bytes) == 1 }
        return isAddress
            ? nil
            : LocalizedText(
                "must be an IPv4 or IPv6 address, without a port",
                de: "muss eine IPv4- oder IPv6-Adresse ohne Port sein")
    }

    /// Returns the text with each character that a person cannot see replaced by its number, such as
    /// `U+001B`, and with at most 256 characters. So a text from outside cannot control a terminal.
    public static func visible(_ text: String) -> String {
        var shown = ""
        for scalar in text.unicodeScalars.prefix(256) {
            if scalar.isUnshowable { shown += name(of: scalar) } else { shown.unicodeScalars.append(scalar) }
        }
        return shown
    }

    private static func name(of scalar: Unicode.Scalar) -> String {
        let number = String(scalar.value, radix: 16, uppercase: true)
        return "U+" + String(repeating: "0", count: max(0, 4 - number.count)) + number
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte) }
    private static func isLetterOrDigit(_ byte: UInt8) -> Bool { isLetter(byte) || (0x30...0x39).contains(byte) }
    private static func isAtomCharacter(_ byte: UInt8) -> Bool {
        isLetterOrDigit(byte) || "!#$%&'*+-/=?^_`{|}~".utf8.contains(byte)
    }
    private static func isHostLabel(_ label: Substring.UTF8View.SubSequence) -> Bool {
        (1...63).contains(label.count) && label.first != UInt8(ascii: "-") && label.last != UInt8(ascii: "-")
            && label.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: "-") }
    }
}
