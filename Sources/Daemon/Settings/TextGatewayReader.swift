import Bytes
import Curl
import Domain
import EventLoop
import SMPP
import Texting
import YAML

/// Reads one gateway of the list; everything that is wrong with it is said at once.
struct TextGatewayReader {
    private static let common = [
        "name", "kind", "password_file", "from", "prefixes", "priority", "timeout", "cost", "ca", "insecure",
    ]
    private static let own = [
        "kannel": ["url", "username", "method", "smsc"], "twilio": ["url", "account", "key", "service"],
        "smpp": ["address", "tls", "system_id", "system_type", "mode", "window", "throughput", "receipts"],
        "http": [
            "url", "username", "method", "headers", "content_type", "body", "authorization", "accepted",
            "accepted_text",
            "refused", "refused_text", "busy",
        ],
    ]
    private static let kinds = ["kannel", "twilio", "http", "smpp"]

    private let node: YAMLNode
    private(set) var problems: [(place: YAMLPlace, message: String)] = []
    private var label = "a gateway"

    init(_ node: YAMLNode) { self.node = node }

    mutating func read() -> Settings.TextGatewayForm? {
        guard let members = node.mapping else {
            complain(node.place, "each gateway must hold keys, each with a value")
            return nil
        }
        let name = text("name")
        if let name { label = "gateway \(name)" }
        guard let kind = text("kind"), let own = Self.own[kind] else {
            let place = node["kind"]?.place ?? node.place
            let near = text("kind").flatMap { Spelling.nearest(to: $0, among: Self.kinds) }
            complain(
                place,
                "\(label): kind must be one of \(Self.kinds.joined(separator: ", "))"
                    + (near.map { "; did you mean \($0)?" } ?? ""))
            return nil
        }
        let known = Self.common + own
        for member in members where !known.contains(member.name) {
            let near = Spelling.nearest(to: member.name, among: known).map { "did you mean \($0)?" }
            let all = "there are \(known.joined(separator: ", "))"
            complain(member.place, "\(label): \(member.name) is no setting of kind \(kind); \(near ?? all)")
        }
        if name == nil { complain(node.place, "a gateway has no name") }
        if let name, !Self.isName(name) {
            complain(place("name"), "name must be 1 to 32 letters, digits, dots, dashes and underscores")
        }
        let form: Settings.TextGatewayForm.Kind? =
            switch kind {
            case "kannel": kannel()
            case "twilio": twilio()
            case "smpp": smpp()
            default: plain()
            }
        var gateway = form.map { Settings.TextGatewayForm(name: name ?? "", kind: $0) }
        gateway?.passwordFile = file("password_file")
        gateway?.from = text("from")
        gateway?.priority = integer("priority", 0...1000) ?? 0
        gateway?.timeout = integer("timeout", 1...20) ?? 10
        if node["prefixes"] != nil { gateway?.prefixes = prefixes() }
        gateway?.cost = cost()
        return problems.isEmpty ? gateway : nil
    }

    // MARK: Kinds

    private mutating func kannel() -> Settings.TextGatewayForm.Kind? {
        require("username", "password_file")
        guard let url = url(nil), let username = text("username") else { return nil }
        let method = word("method", Kannel.Method.allCases.map(\.rawValue)).flatMap { Kannel.Method(rawValue: $0) }
        return .kannel(url, username: username, method: method ?? .get, smsc: text("smsc"))
    }

    private mutating func twilio() -> Settings.TextGatewayForm.Kind? {
        require("account", "password_file")
        if text("service") != nil, text("from") != nil {
            complain(place("service"), "\(label): only one of from and service can be meant")
        }
        guard let url = url(Twilio.production), let account = text("account") else { return nil }
        return .twilio(url, account: account, key: text("key"), service: text("service"))
    }

    private mutating func smpp() -> Settings.TextGatewayForm.Kind? {
        require("address", "system_id", "password_file")
        guard let text = text("address"), let systemID = self.text("system_id") else { return nil }
        guard let address = try? HostPort(settingsText: text) else {
            complain(place("address"), "\(label): address must be HOST:PORT, as in smpp.example.com:2775")
            return nil
        }
        var line = Settings.TextGatewayForm.Line(host: address.host, port: address.port, systemID: systemID)
        line.isTLS = node["tls"] == nil || flag("tls")
        line.authority = file("ca")
        line.systemType = self.text("system_type") ?? ""
        line.mode = word("mode", BindMode.allCases.map(\.rawValue)).flatMap { BindMode(rawValue: $0) } ?? .transceiver
        line.window = integer("window", 1...1000) ?? 10
        line.throughput = integer("throughput", 0...10_000) ?? 0
        line.receipts = node["receipts"] == nil || flag("receipts")
        if !line.isTLS, !isHere(address.host), !flag("insecure") {
            complain(
                place("tls"),
                "\(label): without tls codes and the password can be read on the way; leave tls: false out, or write "
                    + "insecure: true where the network is your own")
        }
        if let from = self.text("from"), SMPPAddress(from) == nil {
            complain(place("from"), "\(label): from must be a number, or at most 11 letters and digits")
        }
        return .smpp(line)
    }

    private mutating func plain() -> Settings.TextGatewayForm.Kind? {
        let method = word("method", ["GET", "POST", "PUT"]) ?? (node["body"] == nil ? "GET" : "POST")
        let address = template("url")
        let body = template("body")
        if node["url"] == nil { complain(node.place, "\(label): url is missing") }
        guard let address else { return nil }
        let sample = address.filled(.url) { _ in "1" }
        guard let url = web(sample, at: place("url")) else { return nil }
        var plain = Settings.TextGatewayForm.Plain(method: method, url: address)
        plain.body = body
        if body != nil {
            plain.contentType = text("content_type") ?? "application/x-www-form-urlencoded"
            if let escaping = TextTemplate.Escaping(contentType: plain.contentType) {
                plain.escaping = escaping
            } else {
                complain(
                    place("content_type"),
                    "\(label): content_type must be JSON, XML, a form or text/plain, as in application/json")
            }
            if method == "GET" {
                complain(place("method"), "\(label): a body does not go with GET; POST or PUT take one")
            }
        } else if text("content_type") != nil {
            complain(place("content_type"), "\(label): content_type does nothing without body")
        }
        plain.fields = fields()
        plain.username = text("username")
        plain.authorizes = word("authorization", ["basic", "none"]) == "basic"
        if plain.authorizes { require("username", "password_file") }
        let gaps = address.gaps.union(body?.gaps ?? [])
        if !gaps.contains(.text) { complain(node.place, "\(label): neither url nor body holds {text}") }
        if gaps.isDisjoint(with: [.to, .number]) {
            complain(node.place, "\(label): neither url nor body holds {to} or {number}")
        }
        if gaps.contains(.password) || plain.fields.contains(where: { $0.value.gaps.contains(.password) }) {
            require("password_file")
        }
        plain.rule.accepted = statuses("accepted")
        plain.rule.acceptedText = text("accepted_text")
        plain.rule.refused = statuses("refused")
        plain.rule.refusedText = text("refused_text")
        plain.rule.busy = statuses("busy")
        return .plain(url, plain)
    }

    /// A line break in a field would be another field: names and numbers have none, texts may.
    private mutating func fields() -> [PlainWeb.Field] {
        guard let node = node["headers"] else { return [] }
        guard let members = node.mapping else {
            complain(node.place, "\(label): headers must hold names, each with a value")
            return []
        }
        return members.compactMap { member in
            guard let text = member.value.string else {
                complain(member.value.place, "\(label): \(member.name) must be one value")
                return nil
            }
            let isName =
                !member.name.isEmpty
                && member.name.utf8.allSatisfy {
                    (0x30...0x39).contains($0) || (0x61...0x7a).contains($0 | 0x20) || $0 == UInt8(ascii: "-")
                }
            do throws(TextTemplate.Malformed) {
                let value = try TextTemplate(text)
                guard isName, text.utf8.allSatisfy({ (0x20...0x7e).contains($0) }), !value.gaps.contains(.text) else {
                    complain(
                        member.place,
                        "\(label): a header has a name of letters, digits and dashes, and one line of ASCII without {text}"
                    )
                    return nil
                }
                return PlainWeb.Field(member.name, value)
            } catch {
                complain(member.value.place, "\(label): \(error.message)")
                return nil
            }
        }
    }

    // MARK: Values

    private mutating func url(_ usual: String?) -> Settings.TextGatewayForm.Web? {
        guard let text = text("url") ?? usual else {
            complain(node.place, "\(label): url is missing")
            return nil
        }
        return web(text, at: place("url"))
    }

    /// Codes do not cross a network in the clear, unless somebody has said so.
    private mutating func web(_ text: String, at place: YAMLPlace) -> Settings.TextGatewayForm.Web? {
        guard let url = TransferURL(text) else {
            complain(place, "\(label): url must be https://HOST/PATH or http://HOST/PATH")
            return nil
        }
        if !url.secure, !isHere(url.host), !flag("insecure") {
            complain(
                place,
                "\(label): url is plain http to another machine, where codes and the password can be read on the way; "
                    + "use https, or write insecure: true where the network is your own")
        }
        return .init(url: text, authority: file("ca"))
    }

    private func isHere(_ host: String) -> Bool {
        host == "localhost" || SocketAddress(host: host, port: 1)?.isLoopback == true
    }

    private mutating func template(_ key: String) -> TextTemplate? {
        guard let text = text(key) else { return nil }
        do throws(TextTemplate.Malformed) {
            return try TextTemplate(text)
        } catch {
            complain(place(key), "\(label): \(key): \(error.message)")
            return nil
        }
    }

    private mutating func prefixes() -> [NumberPrefix] {
        list("prefixes").compactMap { node in
            if let prefix = node.string.flatMap({ NumberPrefix($0) }) { return prefix }
            complain(node.place, "\(label): prefixes must be beginnings of numbers in quotes, such as \"+49\"")
            return nil
        }
    }

    /// One price, or one for each beginning.
    private mutating func cost() -> [NumberPrefix: Int64] {
        guard let node = node["cost"] else { return [:] }
        let message = "\(label): cost must be an amount such as 0.075, or one for each beginning: {\"+49\": 0.075}"
        if let text = node.string {
            if let price = Money.millionths(text) { return [.all: price] }
            complain(node.place, message)
        }
        var cost: [NumberPrefix: Int64] = [:]
        for member in node.mapping ?? [] {
            guard let prefix = NumberPrefix(member.name), let price = member.value.string.flatMap(Money.millionths)
            else {
                complain(member.place, message)
                continue
            }
            cost[prefix] = price
        }
        if node.string == nil, node.mapping == nil { complain(node.place, message) }
        return cost
    }

    private mutating func statuses(_ key: String) -> [Int] {
        list(key).compactMap { node in
            if let status = node.integer, (200...599).contains(status) { return Int(status) }
            complain(node.place, "\(label): \(key) must be statuses of HTTP, as in [200, 202]")
            return nil
        }
    }

    /// A list, or a single value.
    private func list(_ key: String) -> [YAMLNode] {
        guard let node = node[key], !node.isNull else { return [] }
        return node.sequence ?? [node]
    }

    private mutating func text(_ key: String) -> String? {
        guard let node = node[key], !node.isNull else { return nil }
        guard let text = node.string, !text.isEmpty else {
            complain(node.place, "\(label): \(key) must be one text")
            return nil
        }
        return text
    }

    private mutating func file(_ key: String) -> FileName? { text(key).map { FileName($0) } }

    private mutating func flag(_ key: String) -> Bool {
        guard let node = node[key] else { return false }
        if let bool = node.bool { return bool }
        complain(node.place, "\(label): \(key) must be true or false")
        return false
    }

    private mutating func integer(_ key: String, _ range: ClosedRange<Int64>) -> Int? {
        guard let node = node[key] else { return nil }
        if let number = node.integer, range.contains(number) { return Int(number) }
        complain(
            node.place, "\(label): \(key) must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        return nil
    }

    private mutating func word(_ key: String, _ words: [String]) -> String? {
        guard let text = text(key) else { return nil }
        if words.contains(text) { return text }
        complain(place(key), "\(label): \(key) must be one of \(words.joined(separator: ", "))")
        return nil
    }

    private mutating func require(_ keys: String...) {
        for key in keys where node[key] == nil { complain(node.place, "\(label): \(key) is missing") }
    }

    private func place(_ key: String) -> YAMLPlace { node[key]?.place ?? node.place }

    private mutating func complain(_ place: YAMLPlace, _ message: String) {
        // A value that is asked for twice is wrong once.
        if !problems.contains(where: { $0 == (place, message) }) { problems.append((place, message)) }
    }

    private static func isName(_ text: String) -> Bool {
        (1...32).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x61...0x7a).contains($0 | 0x20)
                    || [UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_")].contains($0)
            }
    }
}

extension YAMLNode {
    /// The same in one line.
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
