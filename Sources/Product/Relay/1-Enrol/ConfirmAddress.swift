import Domain
import Log
import World

extension Relay {
    /// Confirms a new address with the code that was sent to it. Returns false if the code is
    /// wrong; a wrong code counts.
    public func confirm(
        address: String, code: String, username: String, by website: Website, as operation: Operation
    ) async throws(Refusal) -> Bool {
        let user = try await user(named: username, of: website)
        let isConfirmed = try await trying("address", of: user, by: website, as: operation) { factors, _ in
            Self.waiting(address, factors)
        } check: { (waiting, secret, now) async throws(Refusal) in
            guard OTP.isCode(code, digits: waiting.digits) else { return nil }
            let sent = try await withStore("address") { () async throws(StoreFailure) in
                try await store.sentCodes(of: waiting.id, at: now)
            }
            return sent.first { waiting.accepts(code, secret: secret, counter: $0) }
        } write: { (waiting, failures, counter, now) async throws(StoreFailure) in
            try await store.confirm(
                address: waiting, of: user.id, failures: failures, code: counter,
                isVouchedFor: isVouchedFor(nil, website),
                at: now, as: operation)
        }
        if isConfirmed { await reportEndedRecoveries(by: operation, of: user.id, website.name, .address) }
        return isConfirmed
    }

    /// Sends another code to a waiting address.
    public func sendCode(
        to address: String, username: String, by website: Website, as operation: Operation
    ) async throws(Refusal) {
        let user = try await user(named: username, of: website)
        guard user.state == .active else { throw Self.barred(user.state) }
        guard !user.codes.isLocked else { throw .codesLocked }
        try await sendCode(to: address, of: user, by: website, as: operation)
    }

    func sendCode(
        to address: String, of user: UserRow, by website: Website, as operation: Operation
    ) async throws(Refusal) {
        guard let factor = Self.waiting(address, try await factors(of: user.id)) else { throw Self.nothingWaits }
        try requireWord(for: factor, "address", user, website)
        try requireReach(Address(factor.kind, address), "address")
        if factor.kind == .mail { try requireMails(of: website) }
        let now = time.now()
        // A request may send to a mail address and to a phone number. Each has its own operation,
        // so a repetition sends nothing again.
        let sending = operations.fixed("address code", operation.id.bytes + factor.id.bytes)
        let code = nextCode(
            of: factor, for: nil, language: operation.languages.message(stored: user.language),
            until: now + Self.confirmationTime, at: now, as: sending)
        let outcome = try await withStore("address") { () async throws(StoreFailure) in
            try await store.send(
                AddressCode(
                    user: user.id, code: code,
                    charge: factor.kind == .sms
                        ? smsLimits.charge(user: user.id, to: address, at: now)?
                            .also(counting: website.id, within: website.policy.limits, at: now) : nil,
                    since: now - Self.addressWindow), as: sending)
        }
        switch outcome {
        case .sent:
            log.info("address.code", [.website: website.name, .user: user.id.text, .factor: factor.kind.rawValue])
            if factor.kind == .mail { startMail(code.id, of: website.limited) } else { startDelivery(code.id) }
        case .limited(let oldest):
            metrics.reached(factor.kind == .sms && oldest == nil ? .sms : .sending)
            log.notice("address.limited", [.website: website.name, .user: user.id.text])
            throw .limited(retryAfter: oldest.map { $0 + Self.addressWindow - now } ?? Self.textPause)
        case .websiteLimited:
            let limit = textLimit(of: website.limited)
            reached(limit, by: website.limited)
            throw .websiteLimited(limit, retryAfter: UsageDay(now).end(of: limit) - now)
        case .changed: throw Self.nothingWaits
        }
    }

    /// The `Retry-After` of a text message that the SMS limits do not allow.
    static let textPause = Duration.seconds(3600)

    private static func waiting(_ address: String, _ factors: [CodeFactor]) -> CodeFactor? {
        factors.first {
            $0.kind.isSent && $0.state == .waiting && $0.address.map { $0.utf8.elementsEqual(address.utf8) } == true
        }
    }

    private static let nothingWaits = Refusal.conflict([
        FieldFault("address", .state, LocalizedText("does not await a code", de: "wartet nicht auf einen Code"))
    ])
}
