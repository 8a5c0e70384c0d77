import Bytes
import DeliveryOutcomes
import Domain
import Log
import World

/// The delivery of mails and text messages: each attempt reads the outbox entry, builds the message
/// and hands it to a courier.
///
/// A message that was just written leaves at once. Those that an outbox round leases wait for their
/// turn (`LeasedMessages`), so that a backlog is not more than the couriers can take.
///
/// Invariants: this relay makes one attempt for an entry at a time (`inFlight`). After two
/// ambiguous attempts a message counts as sent and is not tried again. An announcement of a recovery
/// is tried until a server accepts one, because the wait begins then. The digits of a code are
/// computed for each attempt and are never stored.
///
/// Failures: the store fails after the courier has answered. The outcome then stays in memory
/// (`unsettledMessages`), and is written when the lease ends, without a second attempt. If the
/// relay dies before that, another relay sends the message again with the same id.
///
/// Tests: `RelayTests/MessageTests.swift`, `MessageBacklogTests.swift`, `AccountEventMailTests.swift`,
/// `DyingRelayTests.swift` and `HaltedRelayTests.swift`.
extension Relay {
    /// The time for which a dead letter is kept. An operator may replay it until then.
    static let deadFor = Duration.seconds(30 * 86_400)

    /// Sends a message that was just written to the outbox. The caller does not wait for it.
    func startDelivery(_ entry: OutboxEntryID) { spawn { await self.deliver(entry) } }

    /// Delivers a message, unless this relay is already delivering it. The lease may end before the
    /// attempt if the store is slow or the clock was changed.
    func deliver(_ entry: OutboxEntryID) async {
        guard inFlight.begin(entry) else { return }
        defer { inFlight.end(entry) }
        await send(entry, at: nil)
    }

    /// Delivers a message that an outbox round has leased, when it is its turn.
    func deliver(_ entry: LeasedEntry, _ kind: MessageKind) {
        guard inFlight.begin(entry.id), leasedMessages.add(entry, kind) else { return }
        spawn {
            while let entry = self.leasedMessages.next(kind) {
                if self.leasedMessages.isShortAgain(kind) { self.spawn { await self.processDueEntries() } }
                // Before the message is read: what the wait makes unnecessary is not sent.
                if let place = await self.leasedMessages.place(kind) {
                    await entry.tenant.run { await self.send(entry.id, at: place) }
                }
                self.inFlight.end(entry.id)
            }
        }
    }

    /// - Parameter place: the message's place at the courier; nil if it needs none.
    private func send(_ entry: OutboxEntryID, at place: CourierPlace?) async {
        if let known = unsettledMessages.take(entry) {
            return await write(known, as: known.operation.repeated)
        }
        let found = await attending(entry) { () async throws(Refusal) in
            try await withStore("message") { () async throws(StoreFailure) in
                try await store.message(entry, of: id)
            }
        }
        guard let row = found ?? nil else { return }
        await attempt(row, at: place)
    }

    private func attempt(_ row: MessageRow, at place: CourierPlace?) async {
        guard let courier = row.kind == .mail ? mail : texts else {
            return await settle(
                row, .undeliverable,
                row.kind == .mail ? UnsentAnnouncement.Reason.noServer.text : "no gateway is set")
        }
        let begin = time.now()
        // The reason of the last attempt explains why the message was not sent.
        guard begin < row.expiresAt else { return await settle(row, .expired, row.reason ?? "expired unsent") }
        guard let address = row.address else {
            return await settle(row, .undeliverable, UnsentAnnouncement.Reason.noAddress.text)
        }
        guard let content = content(of: row, at: begin) else {
            return await settle(row, .undeliverable, "the content no longer exists")
        }
        if case .announcement(let event, _, _) = content,
            !notificationBudget.spend(row.id, about: event, of: row.user, at: time.instant())
        {
            return await settle(row, .skipped, "limited")
        }
        let message = Message(
            id: row.id, to: address, website: row.websiteName, account: row.website, name: row.userName,
            language: row.language,
            content: content, accountAddress: accountAddress(for: row, at: begin), expiresAt: row.expiresAt)
        let outcome = await courier.send(message)
        place?.end()
        let counts = { courier.countsAsSent(message) }
        metrics.messaged(row.kind, outcome)
        switch outcome {
        case .accepted(let gateway): await settle(row, .sent, nil, by: gateway, acceptedAt: begin)
        case .unregistered(_, let reason): await settle(row, .refused, reason)
        // An operator may repair the fault while the message about the account event is still
        // useful.
        case .misconfigured(_, let reason) where row.content.isAnnouncement:
            await postpone(row, nil, reason, orSent: counts)
        case .misconfigured(_, let reason), .declined(let reason): await settle(row, .undeliverable, reason)
        case .retry(let wish, let reason), .unavailable(let wish, let reason):
            await postpone(row, wish, reason, orSent: counts)
        // A second ambiguous attempt: the user may have the message. It counts as sent and is not
        // sent a third time.
        case .ambiguous(let reason) where row.ambiguousAt != nil && !row.content.beginsWait:
            counts()
            await settle(row, .sent, reason)
        case .ambiguous(let reason) where row.ambiguousAt != nil:
            await postpone(row, nil, reason, isAmbiguous: true, orSent: counts)
        case .ambiguous(let reason): await postpone(row, .seconds(1), reason, isAmbiguous: true, orSent: counts)
        }
    }

    /// The content of a message; nil if it cannot be built any more.
    private func content(of row: MessageRow, at now: Timestamp) -> Message.Content? {
        switch row.content {
        case .nothing: return nil
        case .announcement(let announcement, let device):
            return .announcement(announcement, device: device, at: row.createdAt)
        case .activation(let token, let website, let sealed):
            return activation(of: row, token: token, website: website, sealed: sealed).map { .activation($0) }
        case .recovery(let mailed): return recovery(mailed, of: row, at: now).map { .recovery($0) }
        case .code(let factor, let counter, let context):
            guard let secret = try? secret(of: factor, user: row.user, website: row.website),
                let counter = UInt64(exactly: counter), OTP.digits.contains(factor.digits)
            else { return nil }
            let code = OTP.code(
                secret: secret, counter: counter, algorithm: factor.algorithm, digits: factor.digits)
            let shown = context.map(Context.shownInPush)
            return .code(
                Message.Code(
                    digits: Secret(Array(code.utf8)), purpose: row.challenge == nil ? .address : .login,
                    service: shown?.service, ip: shown?.ip, place: shown?.place))
        }
    }

    /// The address of the account's page for a mail with a login code or about an account event, if it
    /// goes to an address to which the relay sends codes.
    private func accountAddress(for row: MessageRow, at now: Timestamp) -> Secret? {
        guard row.kind == .mail, row.isToFactor else { return nil }
        switch row.content {
        case .code where row.challenge != nil, .announcement:
            return accountAddress(of: row.token, row.websiteKey, row.websitePolicy, in: row.id, at: now)
        case .code, .activation, .recovery, .nothing: return nil
        }
    }

    private func activation(
        of row: MessageRow, token: UserToken, website: String, sealed: [UInt8]
    ) -> Message.Activation? {
        let use = OperationSecret.Use(.activationMail, user: row.user, website: row.website)
        guard let secret = try? opened(sealed, for: use, of: ActivationMail.row(of: row.id)) else { return nil }
        let activation = Activation(
            ActivationCode(secret), token: token, website: website, origin: settings.origin,
            browsers: settings.browsers, pin: activationPin, expiresAt: row.expiresAt)
        return Message.Activation(code: Secret(utf8: activation.code), link: Secret(utf8: activation.scanned))
    }

    private func recovery(_ mailed: MailedRecovery, of row: MessageRow, at now: Timestamp) -> Message.Recovery? {
        let use = OperationSecret.Use(.recoveryMail, user: row.user, website: row.website)
        guard let secret = try? opened(mailed.sealed, for: use, of: ActivationMail.row(of: row.id)),
            let page = (try? policies.policy(changedBy: mailed.policy))?.recoveryURL
        else { return nil }
        let link = RecoveryToken.address(secret, event: mailed.event, at: page)
        guard mailed.isAnnouncement else { return .begin(link) }
        // The mail was a dead letter for longer than the recovery lived.
        guard mailed.life.phase(at: now) != .expired else { return nil }
        // If it is the first one that is accepted, the wait begins now.
        let readyAt = mailed.life.announced(at: now, since: row.createdAt).readyAt
        return .announcement(cancel: link, lost: mailed.lost, readyAt: readyAt ?? row.createdAt)
    }

    /// - Parameter acceptedAt: when the attempt began that was accepted; nil if none was.
    private func settle(
        _ row: MessageRow, _ step: StepState, _ reason: String?, by gateway: String? = nil,
        acceptedAt: Timestamp? = nil
    ) async {
        // Only a refused or expired message about an account event becomes a dead letter. If it was
        // undeliverable or over the budget, no operator needs it, and a code is useless later.
        let isDead = row.content.isAnnouncement && [.refused, .expired].contains(step)
        let operation = operations.new()
        let settlement = MessageSettlement(
            of: row, step, reason, isDead: isDead, acceptedAt: acceptedAt, at: time.now())
        await write(
            SettledMessage(row: row, settlement: settlement, gateway: gateway, operation: operation), as: operation)
    }

    /// Records the outcome of a message once: the log reports only what the store has.
    private func write(_ known: SettledMessage, as operation: Operation) async {
        let (row, settlement) = (known.row, known.settlement)
        let isFirst = try? await withStore("deliver") { () async throws(StoreFailure) in
            try await store.settle(settlement, as: operation)
        }
        // This relay keeps the lease. The entry is due again when the lease ends.
        guard let isFirst else {
            return unsettledMessages.retain(known, of: row.id, until: row.expiresAt, at: time.now())
        }
        let events = MessageEvents.of(row.kind)
        let fields = fields(of: row, settlement.reason, by: known.gateway)
        // For example, the challenge ended first. The message changes nothing any more.
        guard isFirst else { return log.info(events.overtaken, fields) }
        if row.content.isAnnouncement, let reason = UnsentAnnouncement.Reason(settlement) { metrics.unsent(reason) }
        // Other mails were counted when they were written (`startMail`).
        if settlement.step == .sent, row.kind == .mail, row.content.isAnnouncement {
            usage.count(\.mails, of: row.website, row.websiteKey, at: settlement.at)
        }
        switch settlement.step {
        case .sent: log.info(events.accepted, fields)
        case .refused: log.warning(events.refused, fields)
        case .expired: log.warning(events.expired, fields)
        case .skipped: log.warning(events.limited, fields)
        // A message about an account event is settled as undeliverable only if a repair cannot help
        // now: no courier is configured, or the user has no address any more.
        case _ where row.content.isAnnouncement: log.info(events.undeliverable, fields)
        default: log.error(events.undeliverable, fields)
        }
        if settlement.step != .sent, let challenge = settlement.challenge {
            await advance(challenge, because: .undeliverable)
        }
    }

    /// Reschedules a message, or settles it if no time is left.
    ///
    /// - Parameter counts: called if the message is not tried again and may have arrived.
    private func postpone(
        _ row: MessageRow, _ wish: Duration?, _ reason: String, isAmbiguous: Bool = false, orSent counts: () -> Void
    ) async {
        let now = time.now()
        let jitter = randomFraction()
        let due =
            if let wish {
                MessageBackoff.next(wish: wish, at: now, expiresAt: row.expiresAt, jitter: jitter)
            } else if row.content.isAnnouncement {
                // The first attempt came from an outbox round, which has counted it.
                MessageBackoff.next(
                    MessageBackoff.announcement, attempts: row.attempts - 1, at: now, deadline: nil,
                    expiresAt: row.expiresAt, jitter: jitter)
            } else {
                MessageBackoff.next(
                    MessageBackoff.code, attempts: row.attempts, at: now, deadline: row.deadline,
                    expiresAt: row.expiresAt, jitter: jitter)
            }
        let ambiguousAt = row.ambiguousAt ?? (isAmbiguous ? now : nil)
        guard let due else {
            let step: StepState =
                if ambiguousAt != nil { .sent } else if row.content.isAnnouncement { .expired } else { .undeliverable }
            if step == .sent { counts() }
            return await settle(row, step, reason)
        }
        let pause = MessageRetry(row.id, until: due, reason: reason, ambiguousAt: ambiguousAt)
        let isOurs = try? await withStore("deliver") { () async throws(StoreFailure) in
            try await store.postpone(pause, by: id)
        }
        let events = MessageEvents.of(row.kind)
        // Another relay took this one for dead and has leased the entry.
        guard isOurs != false else { return log.info(events.overtaken, fields(of: row, reason)) }
        log.warning(events.postponed, fields(of: row, reason))
    }

    private func fields(of row: MessageRow, _ reason: String?, by gateway: String? = nil) -> LogFields {
        [
            .challenge: row.challenge?.text, .user: row.user.text, .message: row.id.text, .kind: row.content.label,
            .gateway: gateway, .reason: reason, .attempt: row.attempts,
            .milliseconds: (time.now() - row.createdAt).wholeMilliseconds,
        ]
    }
}

/// The outcome of a message, kept until the store has it.
struct SettledMessage: Sendable {
    let row: MessageRow
    let settlement: MessageSettlement
    let gateway: String?
    /// The operation of the first write. That write may have succeeded: a store that fails during a
    /// commit does not report the result.
    let operation: Operation
}

/// The log events for the outcomes of messages.
private struct MessageEvents {
    let accepted, refused, undeliverable, expired, limited, postponed, overtaken: StaticString

    private static let mail = MessageEvents(
        accepted: "mail.accepted", refused: "mail.refused", undeliverable: "mail.undeliverable",
        expired: "mail.expired", limited: "mail.limited", postponed: "mail.postponed", overtaken: "mail.overtaken")
    private static let sms = MessageEvents(
        accepted: "sms.accepted", refused: "sms.refused", undeliverable: "sms.undeliverable", expired: "sms.expired",
        limited: "sms.limited", postponed: "sms.postponed", overtaken: "sms.overtaken")

    static func of(_ kind: MessageKind) -> MessageEvents { kind == .mail ? mail : sms }
}

extension MessageRow.Content {
    fileprivate var isAnnouncement: Bool {
        switch self {
        case .announcement: true
        case .recovery(let mailed): mailed.isAnnouncement
        case .code, .activation, .nothing: false
        }
    }

    /// Whether the wait of a recovery begins when a server accepts this message.
    fileprivate var beginsWait: Bool {
        guard case .recovery(let mailed) = self else { return false }
        return mailed.isAnnouncement && mailed.life.announcedAt == nil
    }

    fileprivate var label: String {
        switch self {
        case .code: "code"
        case .activation: ActivationMail.event
        case .recovery(let mailed): mailed.event
        case .announcement(let announcement, _): announcement.rawValue
        case .nothing: "nothing"
        }
    }
}
