import Bytes
import YAML

/// Reads the settings file. It finds all problems in one run, each with its position in the file.
public struct SettingsReader {
    /// A problem, with its position in the file.
    public struct Problem: Sendable, Equatable, CustomStringConvertible {
        public let place: YAMLPosition
        public let message: String

        init(at place: YAMLPosition, _ message: String) {
            self.place = place
            self.message = message
        }

        public var description: String { "\(place.file):\(place.line):\(place.column): \(message)" }
    }

    public struct Problems: Error, Sendable, Equatable, CustomStringConvertible {
        public let all: [Problem]
        public var description: String { all.map(\.description).joined(separator: "\n") }
    }

    private(set) var problems: [Problem] = []
    private(set) var settings: Settings
    /// The positions of keys and values in the file.
    private(set) var places = SettingsPositions()
    /// The keys that the file sets.
    var seen: Dictionary<String, YAMLPosition>.Keys { places.keys.keys }

    private init(file: String) {
        settings = SettingsKeys.defaults
        settings.directory = Files.directory(of: file)
    }

    /// Reads settings.
    ///
    /// - Parameter file: the path of the settings, for messages; relative paths start in its
    ///   directory.
    public static func read(_ bytes: [UInt8], file: String) throws(Problems) -> Settings {
        let (read, problems) = try examine(bytes, file: file)
        guard problems.isEmpty else { throw Problems(all: problems) }
        return read.settings
    }

    /// Reads settings that may have problems: what could be read, with the defaults for the rest,
    /// and the problems. Throws if the file is no YAML, because nothing can be read then.
    static func examine(_ bytes: [UInt8], file: String) throws(Problems) -> (SettingsOfFile, [Problem]) {
        var reader = SettingsReader(file: file)
        let root: YAMLNode
        do {
            root = try YAMLReader.read(bytes, file: file)
        } catch {
            throw Problems(all: [Problem(at: error.place, error.message)])
        }
        reader.read(root, at: [])
        reader.checkWhole(root)
        reader.places.note(root)
        return (SettingsOfFile(reader.settings, places: reader.places), reader.problems)
    }

    private mutating func read(_ node: YAMLNode, at path: [String]) {
        if let members = node.mapping {
            for member in members { read(member, at: path) }
        } else if !node.isNull {
            problem(node.place, "\(path.isEmpty ? "the settings" : name(path)) must contain keys with values")
        }
    }

    private mutating func read(_ member: YAMLNode.Member, at path: [String]) {
        let here = path + [member.name]
        if let key = SettingsKeys.all.first(where: { $0.path == here }) {
            if let readTree = key.readTree {
                places.keys[key.name] = member.place
                for (place, message) in readTree(&settings, member.value) { problem(place, message) }
                return
            }
            guard let text = member.value.isNull ? "" : member.value.string else {
                return problem(member.value.place, "\(key.name) must be a single value")
            }
            places.keys[key.name] = member.place
            do throws(SettingsFault) {
                try key.read(&settings, text)
            } catch {
                problem(member.value.place, "\(key.name) \(error.message)")
            }
        } else if SettingsKeys.all.contains(where: { $0.path.starts(with: here) }) {
            read(member.value, at: here)
        } else {
            problem(member.place, unknown(member.name, at: path))
        }
    }

    private func unknown(_ word: String, at path: [String]) -> String {
        let siblings = SettingsKeys.all.filter { $0.path.starts(with: path) && $0.path.count > path.count }
            .map { $0.path[path.count] }
        var names: [String] = []
        for sibling in siblings where !names.contains(sibling) { names.append(sibling) }
        let near = Spelling.nearest(to: word, among: names).map { "did you mean \($0)?" }
        let place = path.isEmpty ? "" : " in \(name(path))"
        return "\(word) is not a setting\(place); \(near ?? "the settings are \(names.joined(separator: ", "))")"
    }

    mutating func problem(_ place: YAMLPosition, _ message: String) {
        problems.append(Problem(at: place, message))
    }

    private func name(_ path: [String]) -> String { path.joined(separator: ".") }
}
