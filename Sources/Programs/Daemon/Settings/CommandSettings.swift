import YAML

extension Settings {
    /// The command that issues the certificates of phones, used if it has words.
    public struct CertificateCommand: Sendable, Equatable {
        /// The path of the program, and its arguments.
        public var words: [String] = []
        /// The longest time of a run.
        public var seconds = 4
        /// Whether the command issues certificates that sign documents.
        public var documents = Switch.off

        public init() {}
    }

    /// A setting that is on or off.
    public enum Switch: String, Sendable, CaseIterable, SettingsValue {
        case on, off
    }

    /// Whether an authority outside of the installation issues the certificates of phones.
    var hasOutsideAuthority: Bool { est.url != nil || !command.words.isEmpty }
}

extension SettingsKeys {
    static let command: [SettingsKey] = [
        .tree(
            "phone_ca.command", example: "[\"/usr/local/lib/phone-ca/issue\", \"--profile\", \"phones\"]",
            "The command that `twoefay-keys` runs for each certificate: the path of the program, and its arguments. "
                + "It gets the certificate request on standard input, and writes the certificate to standard output. "
                + "tls.phones must be the certificate of its authority; tls.phones_key is not read.",
            text: { settings in
                let words = settings.command.words.map(SettingsExample.quoted)
                return words.isEmpty ? nil : "[\(words.joined(separator: ", "))]"
            },
            read: readCommand),
        .number(
            "phone_ca.timeout", \.command.seconds, 1...7,
            "Seconds after which a run of the command is ended. The phone waits for it."),
        .standard(
            "phone_ca.documents", \.command.documents,
            "Whether the command also issues certificates with tags, which sign documents: on or off. Changes of this "
                + "group need a restart of `twoefay-keys` and of the relay."),
    ]

    private static func readCommand(_ settings: inout Settings, _ node: YAMLNode) -> [(YAMLPosition, String)] {
        guard !node.isNull else { return [] }
        guard let nodes = node.sequence, !nodes.isEmpty else {
            return [
                (
                    node.place,
                    "phone_ca.command must be a list, such as [\"/usr/local/lib/phone-ca/issue\", \"--profile\", "
                        + "\"phones\"]; no shell reads it"
                )
            ]
        }
        var words: [String] = []
        for part in nodes {
            guard let word = part.string, !word.utf8.contains(0) else {
                return [(part.place, "phone_ca.command must be a list of texts")]
            }
            words.append(word)
        }
        guard words[0].hasPrefix("/") else {
            return [(nodes[0].place, "phone_ca.command must begin with the absolute path of a program")]
        }
        settings.command.words = words
        return []
    }
}

extension SettingsReader {
    func checkCommand() -> String? {
        if settings.command.words.isEmpty { return nil }
        if settings.est.url != nil { return "phone_ca.command and est.url exclude each other" }
        if settings.keys == nil {
            return "phone_ca.command needs key_service: the relay itself starts no program, twoefay-keys does"
        }
        if settings.token.module != nil { return "phone_ca.command and pkcs11.module exclude each other" }
        return nil
    }
}
