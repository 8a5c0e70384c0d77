import Bytes
import DeliveryOutcomes
import Domain
import Log
import Relay
import SMS
import Templates
import World

/// Carries codes as text messages, through the gateways that are set.
public final class TextCourier: MessageCourier {
    private let exchange: TextExchange
    private let limits: TextLimits
    private let words: WordingBook
    private let ledger: (any TextLedger)?
    private let time: any TimeSource
    private let log: Log
    /// Starts work that nobody waits for, on the loop that asked.
    private let spawn: @Sendable (@escaping @Sendable () async -> Void) -> Void

    public init(
        _ exchange: TextExchange, limits: TextLimits, words: WordingBook, ledger: (any TextLedger)?,
        time: any TimeSource, log: Log, spawn: @escaping @Sendable (@escaping @Sendable () async -> Void) -> Void
    ) {
        self.exchange = exchange
        self.limits = limits
        self.words = words
        self.ledger = ledger
        self.time = time
        self.log = log
        self.spawn = spawn
    }

    /// Nil while some gateway takes messages, as far as is known.
    public var trouble: String? { exchange.trouble }

    public func close() async { await exchange.close() }

    public func send(_ message: Message) async -> MessageOutcome {
        guard limits.allows(message.to) else { return .refused("no text message goes to numbers of that country") }
        guard let text = text(of: message) else { return .undeliverable("only codes go as text messages") }
        let left = message.expiresAt - time.now()
        guard left > .zero else { return .retryAfter(nil, "expired unsent") }
        let report = await exchange.send(text, left: left)
        if case .accepted = report.outcome { account(for: report, of: message) }
        return report.outcome
    }

    public func countsAsSent(_ message: Message) {
        guard let text = text(of: message), let report = exchange.assumeSent(text) else { return }
        account(for: report, of: message)
    }

    private func text(of message: Message) -> TextMessage? {
        guard case .code(let code) = message.content else { return nil }
        let values = WordingValues(
            website: message.website, code: code.digits,
            minutes: WordingValues.minutes(left: message.expiresAt - time.now()), ip: code.ip, place: code.place,
            service: code.service)
        let note = words.current.note(
            code.purpose == .login ? .loginCode : .addressCode, values, language: message.language)
        return TextMessage(id: message.id.text, to: message.to, text: note.text)
    }

    /// Nobody waits for that: what is owed for a message is no matter of its user's.
    private func account(for report: TextReport, of message: Message) {
        guard let ledger else { return }
        let sent = SentText(
            message.id, at: time.now(), prefix: limits.prefix(of: message.to), parts: report.parts, cost: report.cost)
        spawn { [log] in
            do throws(StoreFailure) {
                try await ledger.note(sent)
            } catch {
                log.warning("sms.unaccounted", [.gateway: report.gateway ?? "", .error: "\(error)"])
            }
        }
    }
}
