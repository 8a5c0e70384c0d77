import Bytes
import Curl
import Domain
import EventLoop
import GSM
import SMPP
import SMS
import YAML

/// Reads the settings of one gateway. It reports all problems of the gateway at once.
struct SMSGatewayReader: SettingsItemReader {
    /// The kinds of gateways, as `kind` names them.
    enum Kind: String, CaseIterable {
        case kannel, twilio, http, smpp, mail

        /// The settings of this kind besides those of all kinds.
        var settings: [String] {
            switch self {
            case .kannel: ["url", "username", "method", "smsc", "insecure"]
            case .twilio: ["url", "account", "key", "service", "insecure"]
            case .smpp:
                [
                    "address", "tls", "system_id", "system_type", "mode", "window", "throughput", "receipts",
                    "insecure",
                    "long_texts", "source_ton", "source_npi", "destination_ton", "destination_npi",
                ]
            case .mail: ["url", "username", "address", "subject", "body"]
            case .http:
                [
                    "url", "username", "insecure", "method", "headers", "content_type", "body", "authorization",
                    "accepted", "accepted_text", "refused", "refused_text", "busy",
                ]
            }
        }
    }

    private static let common = [
        "name", "kind", "password_file", "from", "prefixes", "priority", "timeout", "cost", "ca",
    ]

    let node: YAMLNode
    var problems: [(place: YAMLPosition, message: String)] = []
    private(set) var label = "a gateway"

    init(_ node: YAMLNode) { self.node = node }

    mutating func read() -> Settings.SMSGatewaySettings? {
        guard let members = node.mapping else {
            printError(node.place, "each gateway must contain keys with values")
            return nil
        }
        let name = text("name")
        if let name { label = "gateway \(name)" }
        guard let kind = text("kind").flatMap(Kind.init(rawValue:)) else {
            let place = node["kind"]?.place ?? node.place
            let kinds = Kind.allCases.map(\.rawValue)
            let near = text("kind").flatMap { Spelling.nearest(to: $0, among: kinds) }
            printError(
                place,
                "\(label): kind must be one of \(kinds.joined(separator: ", "))"
                    + (near.map { "; did you mean \($0)?" } ?? ""))
            return nil
        }
        let known = Self.common + kind.settings
        for member in members where !known.contains(member.name) {
            let near = Spelling.nearest(to: member.name, among: known).map { "did you mean \($0)?" }
            let all = "the settings are \(known.joined(separator: ", "))"
            printError(
                member.place, "\(label): \(member.name) is not a setting of kind \(kind.rawValue); \(near ?? all)")
        }
        if name == nil { printError(node.place, "a gateway has no name") }
        if let name, !Self.isName(name) {
            printError(place("name"), "name must be 1 to 32 letters, digits, dots, dashes and underscores")
        }
        let form: Settings.SMSGatewaySettings.Kind? =
            switch kind {
            case .kannel: kannel()
            case .twilio: twilio()
            case .smpp: smpp()
            case .mail: mailed()
            case .http: plain()
            }
        var gateway = form.map { Settings.SMSGatewaySettings(name: name ?? "", kind: $0) }
        gateway?.passwordFile = file("password_file")
        gateway?.from = text("from")
        gateway?.priority = integer("priority", 0...1000) ?? 0
        gateway?.timeout = integer("timeout", 1...20) ?? 10
        if node["prefixes"] != nil { gateway?.prefixes = prefixes() }
        gateway?.cost = cost()
        return problems.isEmpty ? gateway : nil
    }

    // MARK: Values

    mutating func url(_ usual: String?) -> Settings.SMSGatewaySettings.HTTPSettings? {
        guard let text = text("url") ?? usual else {
            printError(node.place, "\(label): url is missing")
            return nil
        }
        return web(text, at: place("url"))
    }

    /// Checks the URL of a gateway. Plain HTTP to another machine is refused unless `insecure` is
    /// set, because codes and the password would be readable.
    mutating func web(_ text: String, at place: YAMLPosition) -> Settings.SMSGatewaySettings.HTTPSettings? {
        guard let url = TransferURL(text) else {
            printError(place, "\(label): url must be https://HOST/PATH or http://HOST/PATH")
            return nil
        }
        if !url.secure, !isHere(url.host), !flag("insecure") {
            printError(
                place,
                "\(label): url is plain http to another machine, so others can read codes and the password; "
                    + "use https, or write insecure: true if the network is your own")
        }
        return .init(url: text, authority: file("ca"))
    }

    func isHere(_ host: String) -> Bool {
        host == "localhost" || SocketAddress(host: host, port: 1)?.isLoopback == true
    }

    mutating func template(_ key: String) -> RequestTemplate? {
        guard let text = text(key) else { return nil }
        do throws(RequestTemplate.Malformed) {
            return try RequestTemplate(text)
        } catch {
            printError(place(key), "\(label): \(key): \(error.message)")
            return nil
        }
    }

    private mutating func prefixes() -> [NumberPrefix] {
        list("prefixes").compactMap { node in
            if let prefix = node.string.flatMap({ NumberPrefix($0) }) { return prefix }
            printError(node.place, "\(label): prefixes must be number prefixes in quotes, such as \"+49\"")
            return nil
        }
    }

    /// Reads one price for all numbers, or one price for each prefix.
    private mutating func cost() -> [NumberPrefix: Int64] {
        guard let node = node["cost"] else { return [:] }
        let message = "\(label): cost must be an amount such as 0.075, or one for each prefix: {\"+49\": 0.075}"
        if let text = node.string {
            if let price = Money.millionths(text) { return [.all: price] }
            printError(node.place, message)
        }
        var cost: [NumberPrefix: Int64] = [:]
        for member in node.mapping ?? [] {
            guard let prefix = NumberPrefix(member.name), let price = member.value.string.flatMap(Money.millionths)
            else {
                printError(member.place, message)
                continue
            }
            cost[prefix] = price
        }
        if node.string == nil, node.mapping == nil { printError(node.place, message) }
        return cost
    }

    mutating func statuses(_ key: String) -> [Int] {
        list(key).compactMap { node in
            if let status = node.integer, (200...599).contains(status) { return Int(status) }
            printError(node.place, "\(label): \(key) must be a list of HTTP statuses, such as [200, 202]")
            return nil
        }
    }
}

extension YAMLNode {
    /// The value as YAML in one line.
    var oneLine: String {
        switch content {
        case .scalar(let text, let isPlain):
            isNull ? "~" : isPlain ? SettingsExample.scalar(text) : "\"\(Self.quoted(text))\""
        case .sequence(let nodes): "[" + nodes.map(\.oneLine).joined(separator: ", ") + "]"
        case .mapping(let members):
            "{" + members.map { "\"\(Self.quoted($0.name))\": \($0.value.oneLine)" }.joined(separator: ", ") + "}"
        }
    }

    private static func quoted(_ text: String) -> String { String(SettingsExample.quoted(text).dropFirst().dropLast()) }
}
