import Bytes
import Curl
import HTTP

/// The dialect of an HTTP gateway that the operator describes in the settings.
public struct GenericHTTPDialect: HTTPGatewayDialect {
    /// The meaning of answers. An answer in none of the lists has its usual meaning; an empty list
    /// is ignored.
    public struct Rule: Sendable, Equatable {
        public var accepted: [Int] = []
        /// A text that is in the body of every accepting answer, and in no other answer.
        public var acceptedText: String?
        /// Status codes that mean that the number will never accept the message.
        public var refused: [Int] = []
        /// A text that the body of every answer with this meaning contains.
        public var refusedText: String?
        /// Status codes that mean that a later attempt may succeed.
        public var busy: [Int] = []

        public init() {}
    }

    public struct Field: Sendable, Equatable {
        public let name: String
        public let value: RequestTemplate

        public init(_ name: String, _ value: RequestTemplate) {
            self.name = name
            self.value = value
        }
    }

    public var method: String
    public var url: RequestTemplate
    public var fields: [Field]
    public var contentType: String
    public var escaping: RequestTemplate.Escaping
    public var body: RequestTemplate?
    public var username: String?
    public var password: Secret?
    /// Whether username and password are sent as basic authentication.
    public var authorizes: Bool
    public var from: String?
    public var rule: Rule

    public init(
        method: String, url: RequestTemplate, fields: [Field] = [], contentType: String = "",
        escaping:
            RequestTemplate.Escaping = .none, body: RequestTemplate? = nil, username: String? = nil,
        password: Secret? = nil,
        authorizes: Bool = false, from: String? = nil, rule: Rule = Rule()
    ) {
        self.method = method
        self.url = url
        self.fields = fields
        self.contentType = contentType
        self.escaping = escaping
        self.body = body
        self.username = username
        self.password = password
        self.authorizes = authorizes
        self.from = from
        self.rule = rule
    }

    public func request(for message: SMSMessage) -> HTTPGatewayRequest? {
        let value = { (gap: RequestTemplate.Placeholder) -> String in
            switch gap {
            case .to: message.to
            case .number: String(message.to.dropFirst())
            case .text: message.text
            case .from: from ?? ""
            case .id: message.id
            case .username: username ?? ""
            case .password: password.map { String(decoding: $0.reveal(), as: UTF8.self) } ?? ""
            }
        }
        guard let url = TransferURL(url.filled(.url, value)) else { return nil }
        var sent = Fields()
        for field in fields { sent.add(field.name.lowercased(), field.value.filled(.none, value)) }
        if authorizes, let username, let password {
            sent.add("authorization", BasicAuthorization.value(username, password))
        }
        guard let body else { return HTTPGatewayRequest(method: method, url: url, fields: sent) }
        sent.add("content-type", contentType)
        return HTTPGatewayRequest(
            method: method, url: url, fields: sent, body: Array(body.filled(escaping, value).utf8))
    }

    public func outcome(of answer: Response) -> GatewayOutcome {
        let status = answer.status
        let says = { (text: String) in String(decoding: answer.body, as: UTF8.self).contains(text) }
        if rule.refused.contains(status) { return .refused("\(status)") }
        if let text = rule.refusedText, says(text) { return .refused("\(status), with refused_text in the answer") }
        if rule.busy.contains(status) { return .busy(nil, "\(status)") }
        let isYes = rule.accepted.isEmpty ? (200..<300).contains(status) : rule.accepted.contains(status)
        guard isYes else { return .usual(answer) }
        guard let text = rule.acceptedText, !says(text) else { return .accepted }
        return .unsuited("\(status), without accepted_text in the answer")
    }
}
