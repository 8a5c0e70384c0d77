import Couriers
import Curl
import Domain
import SMPP
import SMS
import YAML

/// The settings of each kind of gateway, besides the common ones.
extension SMSGatewayReader {
    mutating func kannel() -> Settings.SMSGatewaySettings.Kind? {
        require("username", "password_file")
        guard let url = url(nil), let username = text("username") else { return nil }
        let method = word("method", Kannel.Method.allCases.map(\.rawValue)).flatMap { Kannel.Method(rawValue: $0) }
        return .kannel(url, username: username, method: method ?? .get, smsc: text("smsc"))
    }

    mutating func twilio() -> Settings.SMSGatewaySettings.Kind? {
        require("account", "password_file")
        if text("service") != nil, text("from") != nil {
            printError(place("service"), "\(label): set either from or service, not both")
        }
        guard let url = url(Twilio.production), let account = text("account") else { return nil }
        return .twilio(url, account: account, key: text("key"), service: text("service"))
    }

    mutating func smpp() -> Settings.SMSGatewaySettings.Kind? {
        require("address", "system_id", "password_file")
        guard let text = text("address"), let systemID = self.text("system_id") else { return nil }
        guard let address = try? HostPort(settingsText: text) else {
            printError(place("address"), "\(label): address must be HOST:PORT, such as smpp.example.com:2775")
            return nil
        }
        var line = Settings.SMSGatewaySettings.SMPPSettings(host: address.host, port: address.port, systemID: systemID)
        line.isTLS = node["tls"] == nil || flag("tls")
        line.authority = file("ca")
        line.systemType = self.text("system_type") ?? ""
        line.mode = word("mode", BindMode.allCases.map(\.rawValue)).flatMap { BindMode(rawValue: $0) } ?? .transceiver
        line.window = integer("window", 1...1000) ?? 10
        line.throughput = integer("throughput", 0...10_000) ?? 0
        line.receipts = node["receipts"] == nil || flag("receipts")
        let ways = SMPPOptions.LongTexts.self
        line.longTexts =
            word("long_texts", ways.allCases.map(\.rawValue)).flatMap { ways.init(rawValue: $0) } ?? .header
        line.source = numberKind("source")
        line.destination = numberKind("destination")
        if !line.isTLS, !isHere(address.host), !flag("insecure") {
            printError(
                place("tls"),
                "\(label): without TLS, others can read codes and the password; remove tls: false, or write "
                    + "insecure: true if the network is your own")
        }
        if let from = self.text("from"), SMPPAddress(from) == nil {
            printError(place("from"), "\(label): from must be a number, or at most 11 letters and digits")
        }
        return .smpp(line)
    }

    /// Reads the type of number and the numbering plan as SMPP 3.4 numbers them (§5.2.5, §5.2.6).
    private mutating func numberKind(_ of: String) -> SMPPNumberKind {
        SMPPNumberKind(
            ton: integer("\(of)_ton", 0...6).map { UInt8($0) }, npi: integer("\(of)_npi", 0...18).map { UInt8($0) })
    }

    mutating func mailed() -> Settings.SMSGatewaySettings.Kind? {
        require("address")
        let (address, subject) = (template("address"), template("subject"))
        let body = node["body"] == nil ? RequestTemplate.text : template("body")
        guard let address, let body else { return nil }
        var mailed = Settings.SMSGatewaySettings.MailGatewaySettings(
            form: MailGateway.Form(address: address, subject: subject, body: body))
        if let text = text("url") {
            mailed.url = SMTPAddress(text)
            if mailed.url == nil {
                printError(place("url"), "\(label): url must be smtp://HOST[:PORT] or smtps://HOST[:PORT]")
            }
            if (node["username"] == nil) != (node["password_file"] == nil) {
                printError(node.place, "\(label): username and password_file must be set together")
            }
        }
        mailed.authority = file("ca")
        if mailed.authority != nil, node["url"] == nil {
            printError(place("ca"), "\(label): ca has no effect without url")
        }
        mailed.username = text("username")
        if let text = text("from") {
            mailed.from = MailAddress(text)
            if mailed.from == nil {
                printError(
                    place("from"),
                    "\(label): from must be the sender of its mails, NAME@HOST; the default is mail.from")
            }
        }
        let written = [("address", address), ("subject", subject), ("body", body)]
        for case (let key, let template?) in written where !template.gaps.isSubset(of: MailGateway.Form.gaps) {
            printError(place(key), "\(label): \(key): {from} is not allowed in a mail; write the sender instead")
        }
        let sample = address.filled(.none) { $0 == .to ? "+491511234567890" : $0 == .number ? "491511234567890" : "" }
        if address.gaps.isDisjoint(with: [.to, .number]) || !address.gaps.isSubset(of: [.to, .number])
            || FieldRule.email(sample) != nil
        {
            printError(
                place("address"),
                "\(label): address must be a mail address with {number} or {to}, such as \"{number}@sms.example.com\"")
        }
        let gaps = body.gaps.union(subject?.gaps ?? [])
        if !gaps.contains(.text) { printError(node.place, "\(label): subject or body must contain {text}") }
        for (gap, key) in [(RequestTemplate.Placeholder.username, "username"), (.password, "password_file")] {
            if gaps.contains(gap) {
                require(key)
            } else if node[key] != nil, node["url"] == nil {
                printError(
                    place(key), "\(label): \(key) has no effect without url, or {\(gap.rawValue)} in subject or body")
            }
        }
        return .mail(mailed)
    }

    mutating func plain() -> Settings.SMSGatewaySettings.Kind? {
        let method = word("method", ["GET", "POST", "PUT"]) ?? (node["body"] == nil ? "GET" : "POST")
        let address = template("url")
        let body = template("body")
        if node["url"] == nil { printError(node.place, "\(label): url is missing") }
        guard let address else { return nil }
        let sample = address.filled(.url) { _ in "1" }
        guard let url = web(sample, at: place("url")) else { return nil }
        var plain = Settings.SMSGatewaySettings.GenericHTTPSettings(method: method, url: address)
        plain.body = body
        if body != nil {
            plain.contentType = text("content_type") ?? "application/x-www-form-urlencoded"
            if let escaping = RequestTemplate.Escaping(contentType: plain.contentType) {
                plain.escaping = escaping
            } else {
                printError(
                    place("content_type"),
                    "\(label): content_type must be JSON, XML, a form or text/plain, such as application/json")
            }
            if method == "GET" {
                printError(place("method"), "\(label): a GET request has no body; use POST or PUT")
            }
        } else if text("content_type") != nil {
            printError(place("content_type"), "\(label): content_type has no effect without body")
        }
        plain.fields = fields()
        if body != nil, plain.fields.contains(where: { $0.name.lowercased() == "content-type" }) {
            printError(place("headers"), "\(label): set content_type instead of a content-type header")
        }
        plain.username = text("username")
        plain.authorizes = word("authorization", ["basic", "none"]) == "basic"
        if plain.authorizes { require("username", "password_file") }
        let gaps = address.gaps.union(body?.gaps ?? [])
        if !gaps.contains(.text) { printError(node.place, "\(label): url or body must contain {text}") }
        if gaps.isDisjoint(with: [.to, .number]) {
            printError(node.place, "\(label): url or body must contain {to} or {number}")
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

    /// Reads the header fields. A line break in a field would begin another field, so the text of a
    /// message is not allowed in them; numbers are.
    private mutating func fields() -> [GenericHTTPDialect.Field] {
        guard let node = node["headers"] else { return [] }
        guard let members = node.mapping else {
            printError(node.place, "\(label): headers must contain names with values")
            return []
        }
        return members.compactMap { member in
            guard let text = member.value.string else {
                printError(member.value.place, "\(label): \(member.name) must be one value")
                return nil
            }
            let isName =
                !member.name.isEmpty
                && member.name.utf8.allSatisfy {
                    (0x30...0x39).contains($0) || (0x61...0x7a).contains($0 | 0x20) || $0 == UInt8(ascii: "-")
                }
            do throws(RequestTemplate.Malformed) {
                let value = try RequestTemplate(text)
                guard isName, text.utf8.allSatisfy({ (0x20...0x7e).contains($0) }), !value.gaps.contains(.text) else {
                    printError(
                        member.place,
                        "\(label): a header needs a name of letters, digits and dashes, and one ASCII line without {text}"
                    )
                    return nil
                }
                return GenericHTTPDialect.Field(member.name, value)
            } catch {
                printError(member.value.place, "\(label): \(error.message)")
                return nil
            }
        }
    }
}

extension RequestTemplate {
    /// The text of the message alone.
    fileprivate static let text = (try? RequestTemplate("{text}"))
}
