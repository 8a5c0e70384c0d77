import Bytes
import Curl
import GSM
import HTTP

/// The dialect of Kannel's smsbox (`sendsms-user`), and of compatible services. It does not request
/// delivery reports.
public struct Kannel: HTTPGatewayDialect {
    public enum Method: String, Sendable, CaseIterable {
        /// All values in the query, which every Kannel-compatible service supports.
        case get = "GET"
        /// The text in the body and the rest in header fields, which proxies do not log.
        case post = "POST"
    }

    /// The URL of the interface, `…/cgi-bin/sendsms`.
    public var url: TransferURL
    public var method: Method
    public var username: String
    public var password: Secret
    public var from: String?
    /// The `smsc-id` of the connection that Kannel should use.
    public var smsc: String?

    public init(
        url: TransferURL, method: Method = .get, username: String, password: Secret, from: String?, smsc: String? = nil
    ) {
        self.url = url
        self.method = method
        self.username = username
        self.password = password
        self.from = from
        self.smsc = smsc
    }

    public func request(for message: SMSMessage) -> HTTPGatewayRequest? {
        var pairs = [
            ("username", username), ("password", String(decoding: password.reveal(), as: UTF8.self)),
            ("to", message.to),
        ]
        if let from { pairs.append(("from", from)) }
        if let smsc { pairs.append(("smsc", smsc)) }
        // The id appears in Kannel's log, so that operators can recognize a repetition.
        pairs.append(("binfo", message.id))
        if message.size.coding == .ucs2 { pairs.append(("coding", "2")) }
        switch method {
        case .get:
            pairs += [("charset", "UTF-8"), ("text", message.text)]
            let mark = url.path.contains("?") ? "&" : "?"
            return TransferURL(url.text + mark + PercentEncoding.form(pairs, space: "%20")).map {
                HTTPGatewayRequest(method: method.rawValue, url: $0)
            }
        case .post:
            var fields = Fields()
            for (name, value) in pairs { fields.add("x-kannel-\(name)", value) }
            fields.add("content-type", "text/plain; charset=UTF-8")
            return HTTPGatewayRequest(method: method.rawValue, url: url, fields: fields, body: Array(message.text.utf8))
        }
    }

    /// Reads 202 with `0: Accepted for delivery` or `3: Queued for later delivery`; older versions
    /// answer `Sent.`
    public func outcome(of answer: Response) -> GatewayOutcome {
        let says = { (word: String) in String(decoding: answer.body.prefix(200), as: UTF8.self).contains(word) }
        switch answer.status {
        case 202: return .accepted
        case 200..<300:
            let isTaken = ["0:", "3:", "Sent"].contains { answer.body.starts(with: $0.utf8) }
            return isTaken ? .accepted : .usual(answer)
        case 403 where says("routable"): return .unsuited("403: no route for this number")
        case 400 where says("lists"): return .unsuited("400: its allow or deny lists refuse this number")
        default: return .usual(answer)
        }
    }
}
