import Domain
import YAML

/// One key of the settings, declared once: by it the file is read, a wrong one refused, and the annotated example printed.
public struct SettingsKey: Sendable {
    /// `push.apns.topic`
    public let path: [String]
    /// What it is and does, in a sentence or two.
    public let about: String
    /// What the example shows where nothing is set.
    public let example: String
    public let required: Bool
    /// What `example` and `text` give is YAML already: lists and more.
    var isTree = false
    /// Sets it from what stands there, where that is more than one value, and says what is wrong.
    var readTree: (@Sendable (inout Settings, YAMLNode) -> [(place: YAMLPosition, message: String)])?
    /// Sets it from its text.
    let read: @Sendable (inout Settings, String) throws(SettingsFault) -> Void
    /// Its text, and nil where nothing is set.
    let text: @Sendable (Settings) -> String?
    /// What holds where the file does not name it.
    let standard: String?

    public var name: String { path.joined(separator: ".") }
    public var standardText: String? { standard }
}

extension SettingsKey {
    typealias Path<Value> = any WritableKeyPath<Settings, Value> & Sendable

    /// A key that must be there.
    static func required<Value: SettingsValue>(
        _ name: String, _ path: Path<Value>, example: String, _ about: String
    ) -> SettingsKey {
        SettingsKey(
            path: split(name), about: about, example: example, required: true,
            read: { (settings, text) throws(SettingsFault) in settings[keyPath: path] = try Value(settingsText: text) },
            text: { $0[keyPath: path].settingsText }, standard: nil)
    }

    /// A key with a default.
    static func standard<Value: SettingsValue>(_ name: String, _ path: Path<Value>, _ about: String) -> SettingsKey {
        let standard = SettingsKeys.defaults[keyPath: path].settingsText
        return SettingsKey(
            path: split(name), about: about, example: standard, required: false,
            read: { (settings, text) throws(SettingsFault) in
                settings[keyPath: path] = try Value(settingsText: text)
            },
            text: { $0[keyPath: path].settingsText }, standard: standard)
    }

    /// A key that may be left out, or be empty.
    static func optional<Value: SettingsValue>(
        _ name: String, _ path: Path<Value?>, example: String, _ about: String
    ) -> SettingsKey {
        SettingsKey(
            path: split(name), about: about, example: example, required: false,
            read: { (settings, text) throws(SettingsFault) in
                settings[keyPath: path] = text.isEmpty ? nil : try Value(settingsText: text)
            },
            text: { $0[keyPath: path]?.settingsText }, standard: nil)
    }

    /// A whole number within bounds, with a default.
    static func number(_ name: String, _ path: Path<Int>, _ range: ClosedRange<Int>, _ about: String) -> SettingsKey {
        let standard = String(SettingsKeys.defaults[keyPath: path])
        return SettingsKey(
            path: split(name), about: about, example: standard, required: false,
            read: { (settings, text) throws(SettingsFault) in
                settings[keyPath: path] = try whole(text, range)
            },
            text: { String($0[keyPath: path]) }, standard: standard)
    }

    /// The same that may be left out.
    static func number(
        _ name: String, _ path: Path<Int?>, _ range: ClosedRange<Int>, example: Int, _ about: String
    ) -> SettingsKey {
        SettingsKey(
            path: split(name), about: about, example: String(example), required: false,
            read: { (settings, text) throws(SettingsFault) in
                settings[keyPath: path] = text.isEmpty ? nil : try whole(text, range)
            },
            text: { $0[keyPath: path].map { String($0) } }, standard: nil)
    }

    private static func whole(_ text: String, _ range: ClosedRange<Int>) throws(SettingsFault) -> Int {
        guard let number = Int(text), range.contains(number) else {
            throw SettingsFault("must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// A policy: its rules are the domain's.
    static func policy(_ key: String, _ about: String) -> SettingsKey {
        let standard = SettingsKeys.defaults.policy.text(of: key) ?? ""
        return SettingsKey(
            path: ["policies", SettingsKeys.underscored(key)], about: about, example: standard, required: false,
            read: { (settings, text) throws(SettingsFault) in
                do throws(Policy.Fault) {
                    try settings.policy.set(key, to: text)
                } catch {
                    // The domain names the policy as the command line does; here the key's own name stands before it.
                    let message = error.message
                    throw SettingsFault(
                        message.hasPrefix(key + " ") ? String(message.dropFirst(key.count + 1)) : message)
                }
            },
            text: { $0.policy.text(of: key) }, standard: standard)
    }

    static func split(_ name: String) -> [String] { name.split(separator: ".").map(String.init) }
}
