import Bytes
import Curl
import Domain
import SMS
import World

/// A gateway that accepts text messages by mail: the number is a part of the address, and the mail
/// holds the text.
public final class MailGateway: SMSGateway {
    /// The form of the mails.
    public struct Form: Sendable, Equatable {
        /// The placeholders that may be used. `from` is excluded, because the mail's own sender
        /// serves that purpose.
        public static let gaps: Set<RequestTemplate.Placeholder> = [.to, .number, .text, .id, .username, .password]

        /// The template of the address, such as `{number}@sms.example.com`.
        public var address: RequestTemplate
        public var subject: RequestTemplate?
        public var body: RequestTemplate

        public init(address: RequestTemplate, subject: RequestTemplate?, body: RequestTemplate) {
            self.address = address
            self.subject = subject
            self.body = body
        }
    }

    public let name: String
    private let form: Form
    private let from: MailAddress
    private let username: String
    private let password: Secret
    private let client: SMTPClient
    private let time: any TimeSource

    /// Creates the gateway.
    ///
    /// - Parameter username: the value of the placeholder of that name, not a login at the mail
    ///   server.
    /// - Parameter password: likewise the value of its placeholder.
    public init(
        name: String, form: Form, from: MailAddress, username: String, password: Secret, client: SMTPClient,
        time: any TimeSource
    ) {
        self.name = name
        self.form = form
        self.from = from
        self.username = username
        self.password = password
        self.client = client
        self.time = time
    }

    public func send(_ message: SMSMessage, within limit: Duration) async -> GatewayOutcome {
        let to = fill(form.address, message)
        guard FieldRule.email(to) == nil else { return .fault("the address of the number cannot be used in SMTP") }
        let mail = InternetMessage(
            from: from, senderName: nil, to: to, subject: form.subject.map { fill($0, message) } ?? "",
            date: time.now(), id: "\(message.id)@\(from.domain)", language: nil,
            text: fill(form.body, message) + "\n")
        let result = await client.send(
            SMTPTransfer(from: from.address, to: to, data: mail.bytes(), deadline: limit))
        switch result {
        case .success: return .accepted
        case .failure(let failure): return GatewayOutcome(failure)
        }
    }

    public func close() async { client.close() }

    private func fill(_ template: RequestTemplate, _ message: SMSMessage) -> String {
        template.filled(.none) { gap in
            switch gap {
            case .to: message.to
            case .number: String(message.to.dropFirst())
            case .text: message.text
            case .id: message.id
            case .username: username
            case .password: String(decoding: password.reveal(), as: UTF8.self)
            case .from: ""
            }
        }
    }
}

extension GatewayOutcome {
    /// Translates an SMTP failure. A mail server does not know telephone numbers, so another
    /// gateway may accept what it refuses.
    fileprivate init(_ failure: SMTPFailure) {
        let reason = failure.reasonWithoutAddresses
        if failure.mayHaveArrived {
            self = .ambiguous(reason)
        } else if failure.needsOperator {
            self = .fault(reason)
        } else {
            switch failure.cause {
            case .refused:
                self = failure.reply.map { $0.code >= 500 } == true ? .unsuited(reason) : .busy(nil, reason)
            case .malformed: self = .unsuited(reason)
            case .busy: self = .full(reason)
            default: self = .down(reason)
            }
        }
    }
}
