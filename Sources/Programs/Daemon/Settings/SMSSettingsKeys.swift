import Domain
import GSM
import SMS
import YAML

extension SettingsKeys {
    static let texts: [SettingsKey] = [
        .tree(
            "sms.gateways",
            example: "[{name: first, kind: kannel, url: \"http://127.0.0.1:13013/cgi-bin/sendsms\", username: twoefay, "
                + "password_file: kannel.password}]",
            "The gateways that send text messages. The longest matching prefix comes first, then the smaller "
                + "priority, then the order of this list. Kinds: kannel, twilio, http, smpp, mail.",
            text: { $0.texts.gateways.all.isEmpty ? nil : $0.texts.gateways.written }, mayHoldSecrets: true,
            read: readGateways),
        .optional(
            "sms.from", \.texts.from, example: "Example",
            "The sender, for gateways without a sender of their own."),
        .tree(
            "sms.allow", example: "[\"+49\", \"+43\"]",
            "Prefixes of the numbers that may get text messages; [\"+\"] allows all numbers. Required if there is a "
                + "gateway.",
            text: { $0.texts.allowed.map { "[" + $0.all.map { "\"\($0)\"" }.joined(separator: ", ") + "]" } },
            read: readAllowed),
        .number(
            "sms.limits.user_hour", \.texts.userHour, 1...1000,
            "The maximum number of text messages to one user in an hour."),
        .number(
            "sms.limits.user_day", \.texts.userDay, 1...1000,
            "The maximum number of text messages to one user in a day."),
        .number(
            "sms.limits.prefix_hour", \.texts.prefixHour, 1...10_000_000, example: 1000,
            "The maximum number of text messages in an hour to one country, or to a longer number prefix that "
                + "sms.allow or a gateway names. Default: no maximum."),
        .number(
            "sms.limits.prefix_day", \.texts.prefixDay, 1...10_000_000, example: 5000,
            "The maximum number of text messages in a day to one country or prefix. Default: no maximum."),
        .number(
            "sms.limits.day", \.texts.day, 1...100_000_000, example: 10_000,
            "The maximum number of text messages to all users in a day. Default: no maximum."),
    ]

    private static func readGateways(_ settings: inout Settings, _ node: YAMLNode) -> [(YAMLPosition, String)] {
        guard !node.isNull else { return [] }
        guard let nodes = node.sequence else {
            return [(node.place, "sms.gateways must be a list: write a dash before each gateway")]
        }
        var problems: [(YAMLPosition, String)] = []
        var gateways = SMSGateways()
        for node in nodes {
            var reader = SMSGatewayReader(node)
            let gateway = reader.read()
            problems += reader.problems.map { ($0.place, $0.message) }
            guard let gateway else { continue }
            if gateways.all.contains(where: { $0.name == gateway.name }) {
                problems.append((node.place, "two gateways have the name \(gateway.name)"))
            }
            gateways.all.append(gateway)
        }
        gateways.written = node.oneLine
        settings.texts.gateways = gateways
        return problems
    }

    private static func readAllowed(_ settings: inout Settings, _ node: YAMLNode) -> [(YAMLPosition, String)] {
        guard !node.isNull else { return [] }
        var problems: [(YAMLPosition, String)] = []
        var texts: [String] = []
        for part in node.sequence ?? [node] {
            do throws(SettingsFault) {
                guard let text = part.string else { throw SettingsFault("must be a list such as [\"+49\", \"+43\"]") }
                texts += try NumberPrefixes(settingsText: text).all.map(\.text)
            } catch {
                problems.append((part.place, "sms.allow \(error.message)"))
            }
        }
        guard problems.isEmpty else { return problems }
        do throws(SettingsFault) {
            settings.texts.allowed = try NumberPrefixes(settingsText: texts.joined(separator: ", "))
        } catch {
            return [(node.place, "sms.allow \(error.message)")]
        }
        return []
    }
}

extension SettingsKey {
    /// A key that holds a list or a mapping.
    static func tree(
        _ name: String, example: String, _ about: String, text: @escaping @Sendable (Settings) -> String?,
        mayHoldSecrets: Bool = false,
        read: @escaping @Sendable (inout Settings, YAMLNode) -> [(YAMLPosition, String)]
    ) -> SettingsKey {
        SettingsKey(
            path: split(name), about: about, example: example, required: false, isTree: true,
            mayHoldSecrets: mayHoldSecrets,
            readTree: { settings, node in read(&settings, node).map { (place: $0.0, message: $0.1) } },
            read: { _, _ in }, text: text, standard: nil)
    }
}
