import Bytes
import Curl
import HTTP
import JSON

/// The dialect of Twilio's Messages resource, and of compatible services.
public struct Twilio: HTTPGatewayDialect {
    public enum Sender: Sendable, Equatable {
        case from(String)
        case service(String)
    }

    public static let production = "https://api.twilio.com"

    private let url: TransferURL
    private let authorization: Secret
    private let sender: Sender

    /// Creates the dialect; nil if the account id cannot be part of a URL.
    ///
    /// - Parameter key: the id of the API key that the token belongs to, if it is not the account's
    ///   own.
    public init?(at origin: TransferURL, account: String, key: String? = nil, token: Secret, sender: Sender) {
        var base = origin.text
        while base.hasSuffix("/") { base.removeLast() }
        guard !account.isEmpty,
            let url = TransferURL("\(base)/2010-04-01/Accounts/\(PercentEncoding.encode(account))/Messages.json")
        else { return nil }
        self.url = url
        authorization = Secret(utf8: BasicAuthorization.value(key ?? account, token))
        self.sender = sender
    }

    public func request(for message: SMSMessage) -> HTTPGatewayRequest? {
        var fields = Fields()
        fields.add("authorization", String(decoding: authorization.reveal(), as: UTF8.self))
        fields.add("content-type", "application/x-www-form-urlencoded")
        let from =
            switch sender {
            case .from(let number): ("From", number)
            case .service(let id): ("MessagingServiceSid", id)
            }
        let form = PercentEncoding.form([("To", message.to), from, ("Body", message.text)])
        return HTTPGatewayRequest(method: "POST", url: url, fields: fields, body: Array(form.utf8))
    }

    public func outcome(of answer: Response) -> GatewayOutcome {
        let body = (try? JSONReader.read(answer.body))?.object
        if (200..<300).contains(answer.status) {
            // Without an id, the answer may come from an intermediary that accepts every request.
            return body?["sid"]?.string == nil ? .ambiguous("\(answer.status) without a message id") : .accepted
        }
        guard answer.status < 500, let code = body?["code"]?.integer else { return .usual(answer) }
        let reason = "\(answer.status), error \(code)"
        switch code {
        // Invalid number, not a mobile number, not in that country, or the owner has opted out.
        case 21211, 21214, 21217, 21610, 21614: return .refused(reason)
        // Overload: too many requests, or a full queue.
        case 20429, 21611, 63038: return .busy(nil, reason)
        // Faults of authentication, permission or sender.
        case 20001...20009, 20403, 20404, 21212, 21603, 21606, 21659, 21660, 21701, 21703...21705: return .fault(reason)
        default: return .unsuited(reason)
        }
    }
}
