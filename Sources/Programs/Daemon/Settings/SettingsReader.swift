import Bytes
import EventLoop
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

    private var problems: [Problem] = []
    private var settings: Settings
    private var seen: Set<String> = []

    private init(file: String) {
        settings = SettingsKeys.defaults
        settings.directory = Files.directory(of: file)
    }

    /// Reads settings.
    ///
    /// - Parameter file: the path of the settings, for messages; relative paths start in its
    ///   directory.
    public static func read(_ bytes: [UInt8], file: String) throws(Problems) -> Settings {
        var reader = SettingsReader(file: file)
        let root: YAMLNode
        do {
            root = try YAMLReader.read(bytes, file: file)
        } catch {
            throw Problems(all: [Problem(at: error.place, error.message)])
        }
        reader.read(root, at: [])
        reader.checkWhole(root)
        guard reader.problems.isEmpty else { throw Problems(all: reader.problems) }
        return reader.settings
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
                seen.insert(key.name)
                for (place, message) in readTree(&settings, member.value) { problem(place, message) }
                return
            }
            guard let text = member.value.isNull ? "" : member.value.string else {
                return problem(member.value.place, "\(key.name) must be a single value")
            }
            seen.insert(key.name)
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

    /// Reports missing keys, and keys that do not fit together.
    private mutating func checkWhole(_ root: YAMLNode) {
        for key in SettingsKeys.all where key.required && !seen.contains(key.name) {
            problem(root.place, "\(key.name) is missing, as in \(key.name): \(key.example)")
        }
        if settings.proxies?.all.contains(where: { $0.bits == 0 }) == true {
            problem(root.place, "proxies must not contain all addresses: a proxy can claim any client address")
        }
        // Addresses of clients never have this form, so such a range would match no connection.
        if settings.proxies?.all.contains(where: { $0.description.hasPrefix("::ffff:") }) == true {
            problem(root.place, "proxies must contain IPv4 addresses in IPv4 form: 10.0.0.5 instead of ::ffff:10.0.0.5")
        }
        let push = settings.push
        let credentials = ["key", "key_id", "team_id", "certificate", "certificate_key"].map { "push.apns.\($0)" }
        if push.topic == nil, let idle = credentials.first(where: seen.contains) {
            problem(root.place, "\(idle) has no effect without push.apns.topic")
        } else if push.topic != nil, push.credential == nil {
            problem(root.place, "push.apns needs either key, key_id and team_id, or certificate and certificate_key")
        }
        let mail = settings.mail
        let ofTheServer = ["from", "username", "password_file", "ca"].map { "mail.\($0)" }
        if mail.url == nil, let idle = ofTheServer.first(where: seen.contains) {
            problem(root.place, "\(idle) has no effect without mail.url")
        } else if mail.url != nil, mail.from == nil {
            problem(root.place, "mail.from is missing, as in mail.from: login@example.com")
        } else if (mail.username == nil) != (mail.passwordFile == nil) {
            problem(root.place, "mail.username and mail.password_file must be set together")
        }
        if (settings.webhooks.certificate == nil) != (settings.webhooks.key == nil) {
            let place = root["webhooks"]?.place ?? root.place
            problem(place, "webhooks.certificate and webhooks.key must be set together")
        }
        checkToken(root)
        checkTexts(root)
        let ofTheKey = ["contact", "allow", "ca"].map { "push.web.\($0)" }
        if settings.webPush.key == nil, let idle = ofTheKey.first(where: seen.contains) {
            problem(root.place, "\(idle) has no effect without push.web.key")
        }
    }

    private mutating func checkToken(_ root: YAMLNode) {
        let names = ["module", "token", "key", "pin_file"].map { "pkcs11.\($0)" }
        guard let first = names.first(where: seen.contains) else { return }
        let place = root["pkcs11"]?.place ?? root.place
        if settings.keys == nil {
            problem(place, "\(first) has no effect without key_service: only twoefay-keys uses a token")
        } else if !names.allSatisfy(seen.contains) {
            problem(place, "pkcs11 needs module, token, key and pin_file")
        }
    }

    private mutating func checkTexts(_ root: YAMLNode) {
        let ofGateways =
            ["from", "allow"] + ["user_hour", "user_day", "prefix_hour", "prefix_day", "day"].map { "limits.\($0)" }
        if settings.texts.gateways.all.isEmpty {
            // If a gateway is wrong, that problem is enough; these keys may be right.
            if !seen.contains("sms.gateways"), let idle = ofGateways.map({ "sms.\($0)" }).first(where: seen.contains) {
                problem(root.place, "\(idle) has no effect without sms.gateways")
            }
        } else if settings.texts.allowed == nil {
            problem(
                root["sms"]?.place ?? root.place,
                "sms.allow is missing: name the allowed number prefixes, as in allow: [\"+49\"], or [\"+\"] for all"
            )
        }
        for gateway in settings.texts.gateways.all {
            if case .mail(let mailed) = gateway.kind { checkMailed(mailed, gateway.name, root) }
            // For other kinds the sender is optional: the gateway has its own.
            guard case .twilio(_, _, _, nil) = gateway.kind, gateway.from == nil, settings.texts.from == nil else {
                continue
            }
            problem(
                root["sms"]?.place ?? root.place, "gateway \(gateway.name): set from or service, or sms.from")
        }
    }

    private mutating func checkMailed(
        _ mailed: Settings.SMSGatewaySettings.MailGatewaySettings, _ name: String, _ root: YAMLNode
    ) {
        let place = root["sms"]?.place ?? root.place
        if mailed.url == nil, settings.mail.url == nil {
            problem(place, "gateway \(name): url is missing; set it, or mail.url")
        } else if mailed.from == nil, settings.mail.from == nil {
            problem(place, "gateway \(name): from is missing; set it, or mail.from, as in from: login@example.com")
        }
    }

    private mutating func problem(_ place: YAMLPosition, _ message: String) {
        problems.append(Problem(at: place, message))
    }

    private func name(_ path: [String]) -> String { path.joined(separator: ".") }
}
