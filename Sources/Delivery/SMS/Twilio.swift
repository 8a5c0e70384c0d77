import Bytes
import Curl
import HTTP
import JSON

/// Twilio's Messages resource, and what speaks as it does.
public struct Twilio: HTTPGatewayDialect {
    public enum Sender: Sendable, Equatable {
        case from(String)
        case service(String)
    }

    public static let production = "https://api.twilio.com"

    private let url: TransferURL
    private let authorization: Secret
    private let sender: Sender

    /// Nil unless the account's id can stand in a URL. `key` is the id that the token belongs to, where that is not the
    /// account's own.
    public init?(at origin: TransferURL, account: String, key: String? = nil, token: Secret, sender: Sender) {
        var base = origin.text
        while base.hasSuffix("/") { base.removeLast() }
        guard !account.isEmpty,
            let url = TransferURL("\(base)/2010-04-01/Accounts/\(Percent.encode(account))/Messages.json")
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
        let form = Percent.form([("To", message.to), from, ("Body", message.text)])
        return HTTPGatewayRequest(method: "POST", url: url, fields: fields, body: Array(form.utf8))
    }

    public func outcome(of answer: Response) -> GatewayOutcome {
        let body = (try? JSONReader.read(answer.body))?.object
        if (200..<300).contains(answer.status) {
            // Somebody else who says yes to everything stands between us, where there is no id.
            return body?["sid"]?.string == nil ? .ambiguous("\(answer.status) without a message's id") : .accepted
        }
        guard answer.status < 500, let code = body?["code"]?.integer else { return .usual(answer) }
        let reason = "\(answer.status), error \(code)"
        switch code {
        // No number, none that takes texts, none in that country, and one whose owner wants no more of them.
        case 21211, 21214, 21217, 21610, 21614: return .refused(reason)
        // Overloaded: we ask too much, or its queue is full.
        case 20429, 21611, 63038: return .busy(nil, reason)
        // Who we are, what we may, and what we send from.
        case 20001...20009, 20403, 20404, 21212, 21603, 21606, 21659, 21660, 21701, 21703...21705: return .fault(reason)
        default: return .unsuited(reason)
        }
    }
}
