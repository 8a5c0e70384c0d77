import Directory
import DirectorySources
import YAML

extension Settings {
    /// A source of users as the settings describe it.
    public struct DirectorySettings: Sendable, Equatable {
        public enum Kind: Sendable, Equatable {
            case ldap(LDAPSettings)
            case csv(FileName)
        }

        public struct LDAPSettings: Sendable, Equatable {
            public var urls: [String]
            /// The authorities to trust instead of the system's.
            public var authority: FileName?
            /// Whether `ldap:` URLs are used without TLS.
            public var isPlain = false
            public var account: String?
            public var passwordFile: FileName?
            public var base: String
            public var filter: String
            public var pageSize = 500
            public var timeout = 30
        }

        /// A group whose members get a policy.
        public struct Group: Sendable, Equatable {
            /// The DN of an LDAP group, or a value of the column `groups`; nil if a filter is set.
            public var group: String?
            /// The LDAP filter for the members.
            public var filter: String?
            /// The policy as JSON.
            public var policy: String
        }

        public var name: String
        public var website: String
        public var kind: Kind
        public var mapping: DirectoryMapping
        public var groups: [Group] = []
        /// Whether users that the website registered may become users of this source.
        public var adopts = false
        /// The seconds between two syncs by the daemon; 0 means only by command.
        public var interval = 3600
        /// The percentage of users that one sync may disable.
        public var disableLimit = 20
        public var mostEntries = 200_000
    }
}

/// The sources of users, and their text in the settings.
public struct DirectoryList: Sendable, Equatable {
    public var all: [Settings.DirectorySettings] = []
    /// The sources as YAML in one line.
    var written = "[]"

    public init() {}

    public static func == (a: DirectoryList, b: DirectoryList) -> Bool { a.all == b.all }
}

extension SettingsKeys {
    static let directories: [SettingsKey] = [
        .tree(
            "directories",
            example: "[{name: staff, website: shop, kind: active-directory, url: \"ldaps://dc1.example.com\", "
                + "bind_dn: \"cn=twoefay,cn=Users,dc=example,dc=com\", password_file: staff.password, "
                + "base: \"dc=example,dc=com\"}]",
            "Sources of users, each for one website: LDAP directories and CSV files. The relay adds, changes and "
                + "disables users as their source says. docs/operators/directory.md explains all keys. Kinds: "
                + "active-directory, ldap, csv.",
            text: { $0.directories.all.isEmpty ? nil : $0.directories.written }, read: readDirectories)
    ]

    private static func readDirectories(_ settings: inout Settings, _ node: YAMLNode) -> [(YAMLPosition, String)] {
        guard !node.isNull else { return [] }
        guard let nodes = node.sequence else {
            return [(node.place, "directories must be a list: write a dash before each source")]
        }
        var problems: [(YAMLPosition, String)] = []
        var directories = DirectoryList()
        for node in nodes {
            var reader = DirectorySettingsReader(node)
            let directory = reader.read()
            problems += reader.problems.map { ($0.place, $0.message) }
            guard let directory else { continue }
            if directories.all.contains(where: { $0.name == directory.name }) {
                problems.append((node.place, "two directories have the name \(directory.name)"))
            }
            directories.all.append(directory)
        }
        directories.written = node.oneLine
        settings.directories = directories
        return problems
    }
}
