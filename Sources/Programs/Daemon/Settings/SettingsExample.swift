import HTTP

/// Prints an annotated settings file. Keys that are set are written out; other keys are comments
/// that show the default.
public enum SettingsExample {
    public static func annotated(_ settings: Settings) -> String {
        var text = """
            # Settings of Twoefay. Relative paths start in the directory of this file.
            # Most commented keys show their default. Some, such as proxies, show an example and not a default.

            """
        var open: [String] = []
        for key in SettingsKeys.all {
            let group = Array(key.path.dropLast())
            for depth in group.indices where !open.starts(with: group[...depth]) {
                text += heading(Array(group[...depth]), settings)
            }
            open = group
            let indent = String(repeating: "  ", count: group.count)
            if group.isEmpty { text += "\n" }
            text += wrapped(key.about, indent: indent)
            let value = key.text(settings)
            let shown = value ?? key.example
            let written = key.isTree ? shown : scalar(shown)
            let commented = value == nil || value == key.standard
            text += "\(indent)\(commented ? "# " : "")\(key.path[group.count]): \(written)\n"
        }
        return text
    }

    /// Returns the heading of a group. A group is opened even if all its keys are comments, because
    /// an empty group has no effect.
    private static func heading(_ group: [String], _ settings: Settings) -> String {
        let indent = String(repeating: "  ", count: group.count - 1)
        let about = SettingsKeys.sections[group.joined(separator: ".")].map { wrapped($0, indent: indent) } ?? ""
        return (group.count == 1 ? "\n" : "") + about + "\(indent)\(group[group.count - 1]):\n"
    }

    private static func wrapped(_ about: String, indent: String) -> String {
        var lines = ["\(indent)#"]
        for word in about.split(separator: " ") {
            if lines[lines.count - 1].count + word.count + 1 > 110 { lines.append("\(indent)#") }
            lines[lines.count - 1] += " \(word)"
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Returns the text so that YAML reads it back unchanged: plain if that is safe, in quotes
    /// otherwise.
    static func scalar(_ text: String) -> String {
        let plain = text.utf8.allSatisfy { byte in
            UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20 || UInt8(ascii: "-")...UInt8(ascii: ":") ~= byte
                || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "@")
        }
        let leads = text.utf8.first.map { $0 != UInt8(ascii: "-") && $0 != UInt8(ascii: "@") } ?? false
        return plain && leads && !text.hasSuffix(":") && !text.hasPrefix(":") ? text : quoted(text)
    }

    static func quoted(_ text: String) -> String {
        var quoted = "\""
        for character in text.unicodeScalars {
            switch character {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\0"..<" ", "\u{7f}":
                let digits = String(character.value, radix: 16)
                quoted += "\\x" + (digits.count == 1 ? "0" : "") + digits
            default: quoted.unicodeScalars.append(character)
            }
        }
        return quoted + "\""
    }
}

extension SettingsExample {
    /// The example in docs/operators/settings.md: the required keys and a push service.
    static var forReaders: Settings {
        var settings = SettingsKeys.defaults
        settings.origin = WebAddress(secure: true, host: "login.example.com", port: 8080)
        settings.listen = HostPort(host: "0.0.0.0", port: 8080)
        settings.push.topic = "com.example.app"
        settings.push.key = FileName("AuthKey.p8")
        settings.push.keyID = "ABC123DEFG"
        settings.push.teamID = "DEF123GHIJ"
        return settings
    }
}
