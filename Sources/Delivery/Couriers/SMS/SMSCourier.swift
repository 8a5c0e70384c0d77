import Bytes
import DeliveryOutcomes
import Domain
import Log
import Relay
import SMS
import Templates
import World

/// The courier for codes by text message, through the configured gateways.
public final class SMSCourier: MessageCourier {
    private let dispatcher: SMSDispatcher
    private let limits: SMSLimits
    private let catalog: CurrentCatalog
    private let usage: (any SMSUsageStore)?
    private let time: any TimeSource
    private let log: Log
    /// Starts background work on the loop of the caller.
    private let spawn: @Sendable (@escaping @Sendable () async -> Void) -> Void

    public init(
        _ dispatcher: SMSDispatcher, limits: SMSLimits, catalog: CurrentCatalog, usage: (any SMSUsageStore)?,
        time: any TimeSource, log: Log, spawn: @escaping @Sendable (@escaping @Sendable () async -> Void) -> Void
    ) {
        self.dispatcher = dispatcher
        self.limits = limits
        self.catalog = catalog
        self.usage = usage
        self.time = time
        self.log = log
        self.spawn = spawn
    }

    /// The faults of the gateways; nil while some gateway accepts messages, as far as is known.
    public var fault: String? { dispatcher.fault }

    public func close() async { await dispatcher.close() }

    public func send(_ message: Message) async -> DeliveryOutcome {
        guard limits.allows(message.to) else {
            return .unregistered(since: nil, reason: "sms.allow does not allow numbers of that country")
        }
        guard let text = text(of: message) else {
            return .misconfigured(.message, reason: "only codes are sent as text messages")
        }
        let left = message.expiresAt - time.now()
        guard left > .zero else { return .retry(after: nil, reason: "expired unsent") }
        let report = await dispatcher.send(text, left: left)
        if case .accepted = report.outcome { account(for: report, of: message) }
        return report.outcome
    }

    public func countsAsSent(_ message: Message) {
        guard let text = text(of: message), let report = dispatcher.assumeSent(text) else { return }
        account(for: report, of: message)
    }

    private func text(of message: Message) -> SMSMessage? {
        guard case .code(let code) = message.content else { return nil }
        let values = TemplateValues(
            website: message.website, code: code.digits,
            minutes: TemplateValues.minutes(left: message.expiresAt - time.now()), ip: code.ip, place: code.place,
            service: code.service)
        let rendered = catalog.current.sms(
            code.purpose == .login ? .loginCode : .addressCode, values, language: message.language)
        return SMSMessage(id: message.id.text, to: message.to, text: rendered.text)
    }

    /// Records the cost of a message in the background, since the user's login does not depend on
    /// it.
    private func account(for report: SMSReport, of message: Message) {
        guard let usage else { return }
        let sent = SMSUsage(
            message.id, at: time.now(), prefix: limits.prefix(of: message.to), website: message.account,
            parts: report.parts, cost: report.cost)
        spawn { [log] in
            do throws(StoreFailure) {
                try await usage.addUsage(sent)
            } catch {
                log.warning("sms.unaccounted", [.gateway: report.gateway ?? "", .error: "\(error)"])
            }
        }
    }
}
