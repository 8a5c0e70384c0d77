import Couriers
import Curl
import Domain
import GSM
import SMPP
import SMS
import Testing

@testable import Daemon

private let least = """
    origin: https://login.example.com:8080
    listen: 0.0.0.0:8080
    storage: sqlite:twoefay.db

    """

private func read(_ text: String) throws -> Settings {
    try SettingsReader.read(Array((least + text).utf8), file: "t.yaml")
}

/// Returns the problems of a file, each with its line and column.
private func complaints(_ text: String) -> [String] {
    do throws(SettingsReader.Problems) {
        _ = try SettingsReader.read(Array((least + text).utf8), file: "t.yaml")
        return []
    } catch {
        return error.all.map(\.description)
    }
}

@Suite struct SMSSettingsTests {
    private static let kannel = """
        {name: one, kind: kannel, url: "http://127.0.0.1:13013/cgi-bin/sendsms", username: u, password_file: p}
        """

    @Test func gatewaySettingsRoundTrip() throws {
        let text = """
            sms:
              from: Shop
              allow: ["+49", "+43"]
              limits: {user_hour: 3, prefix_day: 100, day: 1000}
              gateways:
                - name: first
                  kind: kannel
                  url: https://sms.example.com/cgi-bin/sendsms
                  username: twoefay
                  password_file: kannel.password
                  method: POST
                  prefixes: ["+49"]
                  priority: 2
                  cost: {"+49": 0.075, "+": 0.1}
                - {name: second, kind: twilio, account: AC1, key: ~, service: MG1, password_file: t, cost: 0.0075, timeout: 5}
                - name: third
                  kind: http
                  url: "https://sms.example.net/send?to={number}"
                  headers: {X-Key: "key {password}"}
                  content_type: application/json
                  body: '{"text": "{text}", "id": "{id}"}'
                  password_file: key
                  accepted: [200]
                  accepted_text: "ok: \\"yes\\""
                  refused: 422
                - {name: fourth, kind: smpp, address: "127.0.0.1:2775", tls: false, system_id: s, password_file: p, window: 5, long_texts: sar, source_ton: 0, destination_npi: 9}
            """
        let settings = try read(text)
        let texts = settings.texts
        #expect(texts.gateways.all.map(\.name) == ["first", "second", "third", "fourth"])
        #expect(texts.limits.allowed.map(\.text) == ["+49", "+43"])
        #expect(texts.limits.userHour == 3 && texts.limits.userDay == 20 && texts.limits.day == 1000)
        #expect(texts.limits.prefixDay == 100 && texts.limits.prefixHour == nil)
        let first = try #require(texts.gateways.all.first)
        #expect(first.cost == [NumberPrefix.country(of: "+49"): 75_000, .all: 100_000] && first.priority == 2)
        guard case .kannel(_, "twoefay", .post, nil) = first.kind else {
            Issue.record("\(first)")
            return
        }
        #expect(texts.gateways.all[1].cost == [.all: 7500] && texts.gateways.all[1].timeout == 5)
        guard case .plain(_, let plain) = texts.gateways.all[2].kind else {
            Issue.record("\(texts.gateways.all[2])")
            return
        }
        #expect(plain.method == "POST" && plain.escaping == .json && plain.rule.refused == [422])
        #expect(plain.rule.acceptedText == #"ok: "yes""#)
        guard case .smpp(let line) = texts.gateways.all[3].kind else {
            Issue.record("\(texts.gateways.all[3])")
            return
        }
        #expect(line.host == "127.0.0.1" && line.port == 2775 && !line.isTLS && line.window == 5 && line.receipts)
        #expect(line.longTexts == .sar && line.source.ton == 0 && line.source.npi == nil && line.destination.npi == 9)
        let printed = try SettingsReader.read(Array(SettingsExample.annotated(settings).utf8), file: "t.yaml")
        #expect(printed == settings)
    }

    @Test func mailGatewaySettingsRoundTrip() throws {
        let text = """
            mail: {url: "smtp://127.0.0.1:25", from: login@example.com}
            sms:
              allow: ["+49"]
              gateways:
                - {name: first, kind: mail, address: "{number}@sms.example.com"}
                - name: second
                  kind: mail
                  url: smtps://mail.example.net
                  ca: ca.pem
                  username: u
                  password_file: p
                  from: Shop <shop@example.com>
                  address: "{to}@gate.example.net"
                  subject: "{username} {password}"
                  body: "#{id}\\n{text}"
            """
        let settings = try read(text)
        let mailed = settings.texts.gateways.all.compactMap { form in
            if case .mail(let mailed) = form.kind { mailed } else { nil }
        }
        try #require(mailed.count == 2)
        #expect(mailed[0].url == nil && mailed[0].from == nil && mailed[0].form.subject == nil)
        #expect(mailed[0].form.body.filled(.none) { $0 == .text ? "Hi" : "?" } == "Hi")
        #expect(mailed[1].url?.text == "smtps://mail.example.net" && mailed[1].from?.address == "shop@example.com")
        #expect(mailed[1].form.body.filled(.none) { $0.rawValue } == "#id\ntext")
        let printed = try SettingsReader.read(Array(SettingsExample.annotated(settings).utf8), file: "t.yaml")
        #expect(printed == settings)
    }

    @Test(
        "one thing wrong with a gateway by mail",
        arguments: [
            ("", "gateway a: address is missing"),
            ("address: sms@example.com", "address must be a mail address with {number} or {to}"),
            ("address: \"{number}\"", "address must be a mail address with {number} or {to}"),
            ("address: \"{number}.{text}@example.com\"", "address must be a mail address with {number} or {to}"),
            ("address: \"{number}@e.com\", body: code", "subject or body must contain {text}"),
            ("address: \"{number}@e.com\", body: \"{from} {text}\"", "body: {from} is not allowed in a mail"),
            ("address: \"{number}@e.com\", body: \"{password} {text}\"", "password_file is missing"),
            ("address: \"{number}@e.com\", username: u", "username has no effect without url, or {username} in"),
            ("address: \"{number}@e.com\", ca: c", "ca has no effect without url"),
            ("address: \"{number}@e.com\", insecure: true", "insecure is not a setting of kind mail"),
            ("address: \"{number}@e.com\", url: \"https://e.com/\"", "url must be smtp://HOST[:PORT] or smtps"),
            ("address: \"{number}@e.com\", url: \"smtp://e.com\", username: u", "must be set together"),
            ("address: \"{number}@e.com\", from: Shop", "from must be the sender of its mails"),
        ])
    func invalidMailGatewayIsReported(_ rest: String, _ message: String) {
        let mail = "mail: {url: \"smtp://127.0.0.1:25\", from: login@example.com}\n"
        let gateway = "{name: a, kind: mail\(rest.isEmpty ? "" : ", ")\(rest)}"
        let said = complaints(mail + "sms: {allow: [\"+\"], gateways: [\(gateway)]}\n")
        #expect(said.count == 1 && said.allSatisfy { $0.contains(message) }, "\(said)")
    }

    @Test func mailGatewayNeedsServerAndSender() {
        let said = { (more: String) in
            complaints("sms: {allow: [\"+\"], gateways: [{name: a, kind: mail, address: \"{to}@e.com\"\(more)}]}\n")
        }
        #expect(said("").contains { $0.contains("gateway a: url is missing; set it, or mail.url") })
        #expect(
            said(", url: \"smtp://127.0.0.1\"").contains {
                $0.contains("gateway a: from is missing; set it, or mail.from")
            })
        #expect(said(", url: \"smtp://127.0.0.1\", from: a@e.com").isEmpty)
    }

    /// Each faulty gateway is reported at its own position, whatever is wrong with the others.
    @Test func everyGatewayIsCheckedAgainstTheOtherSettings() {
        let gateways = """
            sms:
              allow: ["+"]
              gateways:
                - {name: a, kind: mail, address: "{number}@e.com"}
                - {name: b, kind: twilio, account: AC, password_file: p}

            """
        let said = complaints(gateways)
        #expect(said.filter { $0.hasPrefix("t.yaml:7:7: gateway a: url is missing") }.count == 1, "\(said)")
        #expect(said.filter { $0.hasPrefix("t.yaml:7:7: gateway a: from is missing") }.count == 1, "\(said)")
        #expect(said.filter { $0.hasPrefix("t.yaml:8:7: gateway b: set from or service") }.count == 1, "\(said)")
        #expect(said.count == 3, "\(said)")
    }

    @Test func allowedPrefixesAreRequired() {
        #expect(
            complaints("sms: {gateways: [\(Self.kannel)]}\n") == [
                "t.yaml:4:1: sms.allow is missing: name the allowed number prefixes, as in allow: [\"+49\"], or "
                    + "[\"+\"] for all"
            ])
        #expect(complaints("sms: {allow: [\"+49\"]}\n") == ["t.yaml:4:7: sms.allow has no effect without sms.gateways"])
        #expect(complaints("sms: {allow: [\"+\"], gateways: [\(Self.kannel)]}\n").isEmpty)
    }

    @Test(
        "Each fault is reported with its position",
        arguments: [
            ("name: a", "5:7: gateway a: kind must be one of kannel, twilio, http, smpp, mail"),
            (
                "name: a, kind: kanel",
                "gateway a: kind must be one of kannel, twilio, http, smpp, mail; did you mean kannel?"
            ),
            (
                "name: a, kind: kannel, url: \"https://x/\", username: u, passwordfile: p",
                "gateway a: passwordfile is not a setting of kind kannel; did you mean password_file?"
            ),
            ("name: a, kind: kannel, url: \"https://x/\", username: u", "5:7: gateway a: password_file is missing"),
            (
                "name: a b, kind: kannel, url: \"https://x/\", username: u, password_file: p",
                "name must be 1 to 32 letters, digits, dots, dashes and underscores"
            ),
            (
                "name: a, kind: kannel, url: \"http://10.0.0.1/\", username: u, password_file: p",
                "gateway a: url is plain http to another machine"
            ),
            (
                "name: a, kind: kannel, url: \"ftp://x/\", username: u, password_file: p",
                "gateway a: url must be https://HOST/PATH or http://HOST/PATH"
            ),
            (
                "name: a, kind: kannel, url: \"https://x/\", username: u, password_file: p, prefixes: [49]",
                "gateway a: prefixes must be number prefixes in quotes, such as \"+49\""
            ),
            (
                "name: a, kind: kannel, url: \"https://x/\", username: u, password_file: p, cost: 1,5",
                "gateway a:"
            ),
            (
                "name: a, kind: kannel, url: \"https://x/\", username: u, password_file: p, timeout: 60",
                "gateway a: timeout must be a whole number from 1 to 20"
            ),
            (
                "name: a, kind: http, url: \"https://x/?t={text}&to={phone}\"",
                "gateway a: url: {phone} is not a placeholder; the placeholders are {to}, {number}, {text}"
            ),
            ("name: a, kind: http, url: \"https://x/?to={to}\"", "5:7: gateway a: url or body must contain {text}"),
            ("name: a, kind: http, url: \"https://x/?t={text}\"", "url or body must contain {to} or {number}"),
            (
                "name: a, kind: http, url: \"https://x/?t={text}&to={to}&k={password}\"",
                "5:7: gateway a: password_file is missing"
            ),
            (
                "name: a, kind: http, url: \"https://x/?t={text}&to={to}\", headers: {\"X\": \"{text}\"}",
                "a header needs a name of letters, digits and dashes"
            ),
            (
                "name: a, kind: http, url: \"https://x/\", body: \"{to} {text}\", content_type: image/png",
                "content_type must be JSON, XML, a form or text/plain"
            ),
            (
                "name: a, kind: http, url: \"https://x/\", body: \"{to} {text}\", headers: {Content-Type: text/plain}",
                "set content_type instead of a content-type header"
            ),
            (
                "name: a, kind: twilio, account: A, password_file: p",
                "gateway a: set from or service, or sms.from"
            ),
        ])
    func wrong(_ gateway: String, _ message: String) {
        let said = complaints("sms: {allow: [\"+49\"], gateways:\n    [ {\(gateway)}]}\n")
        #expect(said.contains { $0.contains(message) }, "\(said)")
    }

    @Test func plainHTTPGatewayMustBeAllowedExplicitly() throws {
        let gateway =
            "{name: a, kind: kannel, url: \"http://10.0.0.1/\", username: u, password_file: p, insecure: true}"
        #expect(complaints("sms: {allow: [\"+\"], gateways: [\(gateway)]}\n").isEmpty)
    }

    @Test func duplicateGatewayNameIsRefused() {
        let said = complaints("sms: {allow: [\"+\"], gateways: [\(Self.kannel), \(Self.kannel)]}\n")
        #expect(said.count == 1 && said[0].hasSuffix("two gateways have the name one"))
    }

    @Test(arguments: [
        ("allow: [49]", "sms.allow must be number prefixes"),
        ("allow: []", "must be one or more number prefixes"),
        ("limits: {user_hour: 0}", "must be a whole number from 1"), ("limits: {day: many}", "must be a whole number"),
        ("gateways: {a: 1}", "sms.gateways must be a list"), ("gateways: [1]", "each gateway must contain keys"),
    ])
    func invalidSMSSettingsAreReported(_ line: String, _ message: String) {
        let said = complaints("sms: {\(line)}\n")
        #expect(said.contains { $0.contains(message) }, "\(said)")
    }

    @Test(arguments: [("0.075", 75_000), ("1", 1_000_000), ("0", 0), ("12.345678", 12_345_678)])
    func amountsAreParsed(_ text: String, _ millionths: Int) { #expect(Money.millionths(text) == Int64(millionths)) }

    @Test(arguments: ["", ".5", "5.", "1,5", "-1", "1e3", "0.1234567", "1234567"])
    func malformedAmountsAreRefused(_ text: String) { #expect(Money.millionths(text) == nil) }

    @Test func amountsArePrintedWithAtLeastTwoDecimals() {
        #expect(
            [0, 75_000, 1_500_000, 12_345_678, 100].map { Settings.amount($0) } == [
                "0.00", "0.075", "1.50", "12.345678", "0.0001",
            ])
    }
}
