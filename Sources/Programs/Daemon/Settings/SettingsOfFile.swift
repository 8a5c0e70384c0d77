import YAML

/// The settings as a file has them, with the positions in it.
public struct SettingsOfFile: Sendable {
    public let settings: Settings
    let places: SettingsPositions

    init(_ settings: Settings, places: SettingsPositions = SettingsPositions()) {
        self.settings = settings
        self.places = places
    }
}

/// The positions of the keys and values in a settings file, for messages about them.
struct SettingsPositions: Sendable {
    /// The position of each key that the file sets.
    var keys: [String: YAMLPosition] = [:]
    /// The positions of each text in the file, such as the name of a file.
    private var texts: [String: [YAMLPosition]] = [:]

    /// Notes all texts of a file.
    mutating func note(_ node: YAMLNode) {
        if let text = node.string, !text.isEmpty { texts[text, default: []].append(node.place) }
        for node in node.sequence ?? [] { note(node) }
        for member in node.mapping ?? [] { note(member.value) }
    }

    /// Returns a fault after its position. It begins with the path of a file that the settings name,
    /// or with the name of a setting.
    func located(_ fault: String, _ settings: Settings) -> String {
        guard let first = fault.split(separator: ": ", maxSplits: 1).first.map(String.init) else { return fault }
        if let key = keys[first] { return "\(key.file):\(key.line):\(key.column): " + fault }
        return prefix(first, settings) + fault
    }

    /// Returns the positions at which the file names a path, each as `FILE:LINE:COLUMN: `. A path
    /// that is a default is named by its key instead.
    func prefix(_ path: String, _ settings: Settings) -> String {
        let found = texts.filter { settings.path(of: FileName($0.key)) == path }.values.joined()
        guard found.isEmpty else {
            let sorted = found.sorted { ($0.line, $0.column) < ($1.line, $1.column) }
            return sorted.map { "\($0.file):\($0.line):\($0.column)" }.joined(separator: ", ") + ": "
        }
        let key = SettingsKeys.all.first { $0.text(settings).map { settings.path(of: FileName($0)) } == path }
        return key.map { "\($0.name): " } ?? ""
    }
}

/// A setting that has changed in the file, and takes effect only at the next start.
public struct SettingForRestart: Sendable, Equatable {
    public let name: String
    /// The position of its key; nil if the file does not set the key any more.
    let place: YAMLPosition?

    /// The line of its key; nil if the file does not set the key any more.
    public var line: Int? { place?.line }

    /// Such as `twoefay.yaml:12:1: loops`.
    public var text: String {
        place.map { "\($0.file):\($0.line):\($0.column): \(name)" } ?? "\(name), which is not set any more"
    }
}
