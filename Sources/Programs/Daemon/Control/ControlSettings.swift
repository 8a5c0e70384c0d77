/// The names of groups of the operating system, separated by commas.
public struct GroupNames: SettingsValue, Hashable {
    let all: [String]

    public init(settingsText text: String) throws(SettingsFault) {
        all = text.split(separator: ",", omittingEmptySubsequences: false).map { word in
            var word = word[...]
            while word.first == " " { word.removeFirst() }
            while word.last == " " { word.removeLast() }
            return String(word)
        }
        guard all.count <= 16, all.allSatisfy({ (1...255).contains($0.utf8.count) }) else {
            throw SettingsFault("must be 1 to 16 names of groups, separated by commas")
        }
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }) else {
            throw SettingsFault("must not contain control characters")
        }
    }

    public var settingsText: String { all.joined(separator: ", ") }
}

extension Settings {
    /// The socket for commands, and who may use it.
    public struct ControlSettings: Sendable, Equatable {
        /// The socket; nil if there is none.
        public var socket: SocketName?
        public var auditors: GroupNames?
        public var helpdesk: GroupNames?
        public var operators: GroupNames?
        /// The requests of one account in a minute, and those that change something.
        public var requests = 120
        public var changes = 30

        public init() {}

        var groups: [(ControlRole, GroupNames?)] {
            [(.auditor, auditors), (.helpdesk, helpdesk), (.operator, operators)]
        }
    }
}

extension SettingsKeys {
    static let control: [SettingsKey] = [
        .optional(
            "control.socket", \.control.socket, example: "unix:/run/twoefay/control",
            "The socket at which the relay performs commands of `twoefay`. The kernel names the account of each caller."
        ),
        .optional(
            "control.auditors", \.control.auditors, example: "twoefay-audit",
            "The groups of the operating system whose members may read everything, and change nothing."),
        .optional(
            "control.helpdesk", \.control.helpdesk, example: "twoefay-help",
            "The groups whose members may help users."),
        .optional(
            "control.operators", \.control.operators, example: "twoefay-operators",
            "The groups whose members may also delete users, reload the relay, and so on. Root and the relay's own "
                + "account always may."),
        .number(
            "control.requests", \.control.requests, 1...100_000,
            "The maximum number of requests of one account in a minute."),
        .number(
            "control.changes", \.control.changes, 1...100_000,
            "The maximum number of requests of one account in a minute that change something."),
    ]
}
