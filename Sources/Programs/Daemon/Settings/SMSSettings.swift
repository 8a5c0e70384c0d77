import Couriers
import Curl
import Domain
import GSM
import SMPP
import SMS
import YAML

extension Settings {
    /// The settings for text messages. They are sent only if a gateway is set.
    public struct SMSSettings: Sendable, Equatable {
        public var gateways = SMSGateways()
        public var from: String?
        public var allowed: NumberPrefixes?
        public var userHour = 5
        public var userDay = 20
        public var prefixHour: Int?
        public var prefixDay: Int?
        public var day: Int?

        public init() {}

        /// The limits for text messages. A prefix that a gateway names is counted separately,
        /// besides the countries.
        public var limits: SMSLimits {
            SMSLimits(
                allowed: allowed?.all ?? [], counted: gateways.all.flatMap { $0.prefixes + Array($0.cost.keys) },
                userHour: userHour, userDay: userDay, prefixHour: prefixHour, prefixDay: prefixDay, day: day)
        }
    }

    /// A gateway as the settings describe it.
    public struct SMSGatewaySettings: Sendable, Equatable {
        public enum Kind: Sendable, Equatable {
            case kannel(HTTPSettings, username: String, method: Kannel.Method, smsc: String?)
            case twilio(HTTPSettings, account: String, key: String?, service: String?)
            case plain(HTTPSettings, GenericHTTPSettings)
            case smpp(SMPPSettings)
            case mail(MailGatewaySettings)
        }

        /// The settings that all gateways over HTTP have.
        public struct HTTPSettings: Sendable, Equatable {
            public var url: String
            /// An authority to trust besides the system's.
            public var authority: FileName?
        }

        /// The settings of a gateway that speaks SMPP.
        public struct SMPPSettings: Sendable, Equatable {
            public var host: String
            public var port: UInt16
            public var isTLS = true
            public var authority: FileName?
            public var systemID: String
            public var systemType = ""
            public var mode = BindMode.transceiver
            public var window = 10
            public var throughput = 0
            public var receipts = true
            public var longTexts = SMPPOptions.LongTexts.header
            /// The types of numbers, if they differ from what the form of a number implies.
            public var source = SMPPNumberKind()
            public var destination = SMPPNumberKind()
        }

        /// The settings of a gateway that is reached by mail.
        public struct MailGatewaySettings: Sendable, Equatable {
            /// The mail server; nil uses the one of `mail`.
            public var url: SMTPAddress?
            public var authority: FileName?
            /// The sender; nil uses the one of `mail`.
            public var from: MailAddress?
            public var username: String?
            public var form: MailGateway.Form
        }

        public struct GenericHTTPSettings: Sendable, Equatable {
            public var method: String
            public var url: RequestTemplate
            public var fields: [GenericHTTPDialect.Field] = []
            public var contentType = ""
            public var escaping = RequestTemplate.Escaping.none
            public var body: RequestTemplate?
            public var username: String?
            public var authorizes = false
            public var rule = GenericHTTPDialect.Rule()
        }

        public var name: String
        public var kind: Kind
        public var passwordFile: FileName?

        /// An authority to trust besides the system's.
        public var authority: FileName? {
            switch kind {
            case .kannel(let web, _, _, _), .twilio(let web, _, _, _), .plain(let web, _): web.authority
            case .smpp(let line): line.authority
            case .mail(let mailed): mailed.authority
            }
        }

        public var from: String?
        public var prefixes: [NumberPrefix] = [.all]
        public var priority = 0
        /// The longest wait for an answer, in seconds.
        public var timeout = 10
        /// The price of one SMS segment for each prefix, in millionths.
        public var cost: [NumberPrefix: Int64] = [:]
    }
}

/// The gateways, and their text in the settings.
public struct SMSGateways: Sendable, Equatable {
    public var all: [Settings.SMSGatewaySettings] = []
    /// The gateways as YAML in one line.
    var written = "[]"

    public init() {}

    public static func == (a: SMSGateways, b: SMSGateways) -> Bool { a.all == b.all }
}

/// A list of prefixes of phone numbers, such as `+49, +43`; `+` matches every number.
public struct NumberPrefixes: SettingsValue {
    public let all: [NumberPrefix]

    public init(settingsText text: String) throws(SettingsFault) {
        var all: [NumberPrefix] = []
        for part in text.split(whereSeparator: { $0 == "," || $0 == " " }) {
            guard let prefix = NumberPrefix(String(part)) else {
                throw SettingsFault(
                    "must be number prefixes such as \"+49\", or \"+\" for all numbers; not \(part)")
            }
            all.append(prefix)
        }
        guard !all.isEmpty else { throw SettingsFault("must be one or more number prefixes, such as \"+49\"") }
        self.all = all
    }

    public var settingsText: String { all.map(\.text).joined(separator: ", ") }
}

/// Amounts of money in the settings and in output, such as `0.075`.
enum Money {
    /// Returns an amount in millionths; nil if the text is not an amount.
    static func millionths(_ text: String) -> Int64? {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), (1...6).contains(parts[0].count), (parts.last?.count ?? 0) <= 6,
            parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy { (0x30...0x39).contains($0) } })
        else { return nil }
        let fraction = parts.count == 2 ? String(decoding: parts[1], as: UTF8.self) : ""
        let digits = String(decoding: parts[0], as: UTF8.self) + fraction
        return Int64(digits + String(repeating: "0", count: 6 - fraction.utf8.count))
    }
}

extension Settings {
    /// Returns an amount in millionths as text, with at least two digits after the point.
    public static func amount(_ millionths: Int64) -> String {
        var fraction = String(String(1_000_000 + millionths % 1_000_000).dropFirst())
        while fraction.count > 2, fraction.hasSuffix("0") { fraction.removeLast() }
        return "\(millionths / 1_000_000).\(fraction)"
    }
}
