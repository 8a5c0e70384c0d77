import Bytes
import Curl
import DeliveryOutcomes
import Domain
import Log
import QR
import Relay
import Synchronization
import Templates
import World

/// The courier for mails. It renders messages and sends them to a mail server.
public final class MailCourier: MessageCourier {
    private struct ServerFault {
        let reason: String
        let since: Instant
    }

    /// The longest time for a mail. It is less than a courier may take, so that the outcome is
    /// known before the lease ends.
    private static let longest = Duration.seconds(20)
    /// The time for which a failure counts as a fault of the server. Only another mail shows
    /// whether the server works again.
    private static let remembered = Duration.seconds(60)

    private let client: SMTPClient
    private let from: MailAddress
    private let catalog: CurrentCatalog
    private let time: any TimeSource
    private let log: Log
    private let draw: @Sendable (String) async -> [UInt8]?
    private let lastFault = Mutex<ServerFault?>(nil)

    /// - Parameter draw: returns a QR code as a PNG image; nil if the text is too long for a code. It
    ///   is a parameter because drawing takes longer than a loop should be busy.
    public init(
        client: SMTPClient, from: MailAddress, catalog: CurrentCatalog, time: any TimeSource, log: Log,
        draw: @escaping @Sendable (String) async -> [UInt8]? = { try? QRCode($0).png() }
    ) {
        self.client = client
        self.from = from
        self.catalog = catalog
        self.time = time
        self.log = log
        self.draw = draw
    }

    /// Sends a message. Must be called on a loop.
    public func send(_ message: Message) async -> DeliveryOutcome { await deliver(message).outcome }

    /// Sends a message and also returns the server's reply, if the server was contacted.
    public func deliver(
        _ message: Message
    ) async -> (outcome: DeliveryOutcome, result: Result<SMTPReply, SMTPFailure>?) {
        let now = time.now()
        let left = message.expiresAt - now
        guard left > .zero else { return (.misconfigured(.message, reason: "expired unsent"), nil) }
        // The store may hold any address. Addresses with non-ASCII letters need SMTPUTF8, which few
        // servers support.
        guard FieldRule.email(message.to) == nil else {
            return (.unregistered(since: nil, reason: "the address cannot be used in SMTP"), nil)
        }
        let rendered = catalog.current.letter(
            message.mailTemplate, message.values(left: left), language: message.language)
        var mail = InternetMessage(
            from: from, senderName: message.website, to: message.to, subject: rendered.subject, date: now,
            id: "\(message.id.text)@\(from.domain)", language: rendered.language, text: rendered.text)
        if case .activation(let activation) = message.content,
            let png = await draw(String(decoding: activation.link.reveal(), as: UTF8.self))
        {
            mail.image = InternetMessage.Image(name: "activation.png", png: png)
        }
        let result = await client.send(
            SMTPTransfer(
                from: from.address, to: message.to, data: mail.bytes(), deadline: min(left, Self.longest),
                owner: message.website))
        recordServerFault(result)
        return (DeliveryOutcome(result), result)
    }

    /// The recent fault of the server that affects more than a single mail.
    public var fault: String? {
        lastFault.withLock { fault in
            fault.flatMap { time.instant() - $0.since < Self.remembered ? $0.reason : nil }
        }
    }

    /// Ends the transfers under way.
    public func close() { client.close() }

    private func recordServerFault(_ result: Result<SMTPReply, SMTPFailure>) {
        guard case .failure(let failure) = result, failure.isOfTheServer else {
            if result.hasReply { lastFault.withLock { $0 = nil } }
            return
        }
        let reason = failure.reasonWithoutAddresses
        lastFault.withLock { $0 = ServerFault(reason: reason, since: time.instant()) }
        let server = client.server.address.text
        if failure.needsOperator {
            log.error("mail.server.refuses", [.endpoint: server, .reason: reason])
        } else {
            log.warning("mail.server.unanswered", [.endpoint: server, .reason: reason])
        }
    }
}

extension Result<SMTPReply, SMTPFailure> {
    /// Whether the server replied. It did not if the mail failed earlier, for example while it
    /// waited for a connection.
    fileprivate var hasReply: Bool {
        guard case .failure(let failure) = self else { return true }
        return failure.reply != nil
    }
}

extension Message {
    fileprivate var mailTemplate: MailTemplate {
        switch content {
        case .code(let code): code.purpose == .login ? .loginCode : .addressCode
        case .activation: .activation
        case .recovery(.begin): .recoveryLink
        case .recovery(.announcement): .recoveryWaiting
        case .announcement(let what, _, _):
            switch what {
            case .deviceBound: .deviceBound
            case .deviceUnbound: .deviceUnbound
            case .secretDelivered: .secretDelivered
            case .deviceCertified: .deviceCertified
            case .userFrozen: .userFrozen
            case .userLocked: .userLocked
            case .codesLocked: .codesLocked
            case .pinLocked: .pinLocked
            case .pinChanged: .pinChanged
            case .pukLocked: .pukLocked
            case .unlockIssued: .unlockIssued
            case .temporaryIssued: .temporaryIssued
            case .temporaryUsed: .temporaryUsed
            case .recoveryWaiting: .recoveryWaiting
            case .recoveryDone: .recoveryDone
            case .recoveryCancelled: .recoveryCancelled
            }
        }
    }

    fileprivate func values(left: Duration) -> TemplateValues {
        switch content {
        case .code(let code):
            TemplateValues(
                website: website, code: code.digits, minutes: TemplateValues.minutes(left: left), ip: code.ip,
                place: code.place, service: code.service, account: accountAddress)
        case .activation(let activation):
            TemplateValues(
                website: website, code: activation.code, link: activation.link,
                minutes: TemplateValues.minutes(left: left))
        case .recovery(.begin(let link)):
            TemplateValues(website: website, link: link, minutes: TemplateValues.minutes(left: left))
        case .recovery(.announcement(let cancel, let lost, let readyAt)):
            TemplateValues(website: website, link: cancel, time: readyAt, lost: lost.asLost)
        case .announcement(_, let device, let time):
            TemplateValues(website: website, device: device, time: time, account: accountAddress)
        }
    }
}

extension Factor {
    /// The factor as a mail names it; nil if nobody can lose it.
    fileprivate var asLost: LostFactor? {
        switch self {
        case .totp: .app
        case .hotp: .token
        case .push: .phones
        case .pull, .sms, .mail, .recovery, .operator: nil
        }
    }
}
