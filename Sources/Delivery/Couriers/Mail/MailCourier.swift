import Curl
import DeliveryOutcomes
import Domain
import Log
import Relay
import Synchronization
import Templates
import World

/// Words messages and hands them to a mail server.
public final class MailCourier: MessageCourier {
    private struct ServerFault {
        let reason: String
        let since: Instant
    }

    /// Less than a courier may take, so that what became of a mail is known when its row's lease is over.
    private static let longest = Duration.seconds(20)
    /// How long a failure speaks against the server. Nobody looks whether it is back but by sending.
    private static let remembered = Duration.seconds(60)

    private let client: SMTPClient
    private let from: MailAddress
    private let words: CurrentCatalog
    private let time: any TimeSource
    private let log: Log
    private let lastTrouble = Mutex<ServerFault?>(nil)

    public init(client: SMTPClient, from: MailAddress, words: CurrentCatalog, time: any TimeSource, log: Log) {
        self.client = client
        self.from = from
        self.words = words
        self.time = time
        self.log = log
    }

    /// On a loop.
    public func send(_ message: Message) async -> MessageOutcome { await deliver(message).outcome }

    /// The same, with what the server said, if it was asked.
    public func deliver(
        _ message: Message
    ) async -> (outcome: MessageOutcome, said: Result<SMTPReply, SMTPFailure>?) {
        let now = time.now()
        let left = message.expiresAt - now
        guard left > .zero else { return (.undeliverable("expired unsent"), nil) }
        // Whatever is in the store: addresses with other letters than ASCII's need SMTPUTF8, which few servers have.
        guard FieldRule.email(message.to) == nil else { return (.refused("no address that SMTP can carry"), nil) }
        let letter = words.current.letter(message.letter, message.values(left: left), language: message.language)
        let mail = InternetMessage(
            from: from, senderName: message.website, to: message.to, subject: letter.subject, date: now,
            id: "\(message.id.text)@\(from.domain)", language: letter.language, text: letter.text)
        let result = await client.send(
            SMTPTransfer(
                from: from.address, to: message.to, data: mail.bytes(), deadline: min(left, Self.longest)))
        recordServerFault(result)
        return (MessageOutcome(result), result)
    }

    /// What went wrong lately that is not a single mail's matter.
    public var fault: String? {
        lastTrouble.withLock { trouble in
            trouble.flatMap { time.instant() - $0.since < Self.remembered ? $0.reason : nil }
        }
    }

    /// Ends what is under way.
    public func close() { client.close() }

    private func recordServerFault(_ result: Result<SMTPReply, SMTPFailure>) {
        guard case .failure(let failure) = result, failure.isOfTheServer else {
            if result.wasHeard { lastTrouble.withLock { $0 = nil } }
            return
        }
        let reason = failure.reasonWithoutAddresses
        lastTrouble.withLock { $0 = ServerFault(reason: reason, since: time.instant()) }
        let server = client.server.address.text
        if failure.needsOperator {
            log.error("mail.server.refuses", [.endpoint: server, .reason: reason])
        } else {
            log.warning("mail.server.unanswered", [.endpoint: server, .reason: reason])
        }
    }
}

extension Result<SMTPReply, SMTPFailure> {
    /// Whether the server had a say in it: it was not asked about a mail that waits for others.
    fileprivate var wasHeard: Bool {
        guard case .failure(let failure) = self else { return true }
        return failure.reply != nil
    }
}

extension Message {
    fileprivate var letter: MailTemplate {
        switch content {
        case .code(let code): code.purpose == .login ? .loginCode : .addressCode
        case .announcement(let what, _, _):
            switch what {
            case .deviceBound: .deviceBound
            case .deviceUnbound: .deviceUnbound
            case .userFrozen: .userFrozen
            case .userLocked: .userLocked
            case .codesLocked: .codesLocked
            }
        }
    }

    fileprivate func values(left: Duration) -> TemplateValues {
        switch content {
        case .code(let code):
            TemplateValues(
                website: website, code: code.digits, minutes: TemplateValues.minutes(left: left), ip: code.ip,
                place: code.place, service: code.service)
        case .announcement(_, let device, let time): TemplateValues(website: website, device: device, time: time)
        }
    }
}
