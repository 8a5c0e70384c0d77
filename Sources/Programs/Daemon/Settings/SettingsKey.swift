import Domain
import YAML

/// A key of the settings, declared once. The declaration is used to read the file, to report a
/// wrong value, and to print the annotated example.
///
/// Tested in `SettingsTests.swift`.
public struct SettingsKey: Sendable {
    /// The path of the key, such as `push.apns.topic`.
    public let path: [String]
    /// The meaning of the key, in a sentence or two.
    public let about: String
    /// The value in the example if nothing is set.
    public let example: String
    public let required: Bool
    /// Whether `example` and `text` are YAML already, such as lists.
    var isTree = false
    /// Whether a password can be written in the value itself, such as in a header for a gateway.
    var mayHoldSecrets = false
    /// Sets the key from a list or mapping, and returns the problems; nil for a key with one value.
    var readTree: (@Sendable (inout Settings, YAMLNode) -> [(place: YAMLPosition, message: String)])?
    /// Sets the key from its text.
    let read: @Sendable (inout Settings, String) throws(SettingsFault) -> Void
    /// Returns the text of the value; nil if nothing is set.
    let text: @Sendable (Settings) -> String?
    /// The default; nil if the key has none.
    let standard: String?

    public var name: String { path.joined(separator: ".") }
    public var standardText: String? { standard }
}

extension SettingsKey {
    typealias Path<Value> = any WritableKeyPath<Settings, Value> & Sendable

    /// A key that must be set.
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

    /// A whole number within bounds that may be left out.
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

    /// A policy, whose rules the module Domain defines.
    static func policy(_ key: String, _ about: String) -> SettingsKey {
        let standard = SettingsKeys.defaults.policy.text(of: key) ?? ""
        return SettingsKey(
            path: ["policies", SettingsKeys.underscored(key)], about: about, example: standard, required: false,
            read: { (settings, text) throws(SettingsFault) in
                do throws(Policy.Fault) {
                    try settings.policy.set(key, to: text)
                } catch {
                    // The message begins with the policy's name as on the command line. Here the
                    // name of the key stands before it instead.
                    let message = error.message
                    throw SettingsFault(
                        message.hasPrefix(key + " ") ? String(message.dropFirst(key.count + 1)) : message)
                }
            },
            text: { $0.policy.text(of: key) }, standard: standard)
    }

    static func split(_ name: String) -> [String] { name.split(separator: ".").map(String.init) }
}
