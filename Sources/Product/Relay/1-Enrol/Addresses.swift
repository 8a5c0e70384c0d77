import Bytes
import Domain
import Log
import World

/// An address to which a user's codes are sent: a mail address, or a phone number for text
/// messages.
public struct Address: Sendable, Equatable {
    /// `mail` or `sms`.
    public let kind: Factor
    public let text: String

    public init(mail: String) { (kind, text) = (.mail, mail) }
    public init(phone: String) { (kind, text) = (.sms, phone) }

    init(_ kind: Factor, _ text: String) { (self.kind, self.text) = (kind, text) }

    /// An address in a form that its owner recognises, and that does not reveal it to others.
    static func masked(_ text: String) -> String {
        if let at = text.lastIndex(of: "@") { return "\(text.prefix(1))…\(text[at...])" }
        return "\(text.prefix(3))…\(text.suffix(2))"
    }

    /// The request parameter that contains an address of this kind.
    static func parameter(_ kind: Factor) -> String { kind == .mail ? "email" : "phone" }
    var parameter: String { Self.parameter(kind) }

    public static let kinds: [Factor] = [.mail, .sms]
}

/// A change that a website makes to its user. A value that is nil stays as it is.
public struct UserChange: Sendable {
    /// The new display name; the inner nil removes it. The same holds for the other values.
    public var displayName: String??
    public var language: String??
    public var addresses: [Factor: String?] = [:]
    public var expiresAt: Timestamp??

    public init() {}
}

/// The result of a change: the user, and the new addresses that wait for a code.
public struct ChangedUser: Sendable {
    public let user: UserRow
    public let waiting: [Address]
}

extension Relay {
    /// The most codes that are sent to new addresses of one kind and user in five minutes, whatever
    /// the addresses are.
    public static let addressCodes = 5
    static let addressWindow = Policy.limitWindow

    /// Changes a user. Names change at once, and addresses are removed at once. A new address waits
    /// until a code has confirmed it.
    public func change(
        username: String, _ change: UserChange, approval: ChallengeID?, by website: Website,
        as operation: Operation
    ) async throws(Refusal) -> ChangedUser {
        let user = try await user(named: username, of: website)
        if let expiresAt = change.expiresAt {
            guard UserExpiry.isAllowed(expiresAt, insteadOf: user.expiresAt, by: user.expiresBy) else {
                throw .expiryOfOperator
            }
        }
        let known = try await self.factors(of: user.id)
        let wanted = Address.kinds.compactMap { kind in
            change.addresses[kind].flatMap(\.self).map { Address(kind, $0) }
        }.filter { address in
            !known.contains { $0.kind == address.kind && $0.state == .active && $0.address == address.text }
        }
        for address in wanted { try requireReach(address, address.parameter) }
        let approved = wanted.isEmpty ? nil : try await word(for: wanted, approval, user, website, operation)
        let (now, secret) = (time.now(), drawSecret())
        var factors: [NewFactor] = []
        for address in wanted {
            // A waiting address keeps its row, with its number of sent codes and its failures.
            let before = known.first { $0.kind == address.kind && $0.state == .waiting }
            factors.append(
                try factor(
                    for: address, .waiting, inPlaceOf: before, of: user.id, website.id, approved, at: now,
                    as: operation, secret))
        }
        var writing = UserUpdate(
            user: user.id, website: website.id, change: change, addresses: factors,
            isVouchedFor: isVouchedFor(approved, website), at: now)
        writing.changes = change.replaced(in: user)
        let outcome = try await withStore("user") { [writing] () async throws(StoreFailure) in
            try await store.change(writing, as: operation)
        }
        switch outcome {
        case .done: log.info("user.changed", [.website: website.name, .user: user.id.text])
        case .gone: throw .notFound
        case .barred(let state): throw Self.barred(state)
        case .taken(let kinds): throw .conflict(kinds.map(Self.takenFault))
        case .expiryOfOperator: throw .expiryOfOperator
        case .refused: throw approved == nil ? .unavailable : Self.noApproval
        }
        if change.addresses[.mail] != nil {
            await reportEndedRecoveries(by: operation, of: user.id, website.name, .address)
        }
        let changed = try await self.user(named: username, of: website)
        for address in wanted { try await sendCode(to: address.text, of: changed, by: website, as: operation) }
        return ChangedUser(user: changed, waiting: wanted)
    }

    /// Returns the user's approval of all new addresses together; nil if the user need not approve.
    private func word(
        for wanted: [Address], _ approval: ChallengeID?, _ user: UserRow, _ website: Website, _ operation: Operation
    ) async throws(Refusal) -> Approved? {
        guard let first = wanted.first else { return nil }
        // If there are two addresses, the user sees both in the approval.
        return try await word(
            for: first.kind, address: wanted.map(\.text).joined(separator: ", "), approval: approval, user, website,
            operation)
    }

    /// Returns the factor for an address, with its own secret.
    func factor(
        for address: Address, _ state: FactorState, inPlaceOf before: CodeFactor? = nil, of user: UserID,
        _ website: WebsiteID, _ approved: Approved? = nil, at now: Timestamp, as operation: Operation,
        _ secret: OperationSecret
    ) throws(Refusal) -> NewFactor {
        let id = before?.id ?? operation.identifier(address.kind.rawValue)
        return NewFactor(
            id: id, user: user, kind: address.kind, state: state,
            sealed: try seal(
                secret.factorSecret(address.kind), row: id, kind: address.kind, user: user, website: website),
            counter: before?.counter ?? 0,
            address: address.text, approvedBy: approved, at: now)
    }

    /// Throws unless a code can be sent to the address.
    func requireReach(_ address: Address, _ parameter: String) throws(Refusal) {
        guard courier(for: address.kind) != nil else {
            throw .conflict([
                FieldFault(
                    parameter, .state,
                    LocalizedText(
                        "cannot be confirmed: the relay has no mail server or gateway for it",
                        de: "kann nicht bestätigt werden, denn das Relay hat dafür keinen Mailserver und kein Gateway"))
            ])
        }
        guard address.kind != .sms || smsLimits.allows(address.text) else {
            throw .conflict([
                FieldFault(
                    parameter, .state,
                    LocalizedText(
                        "cannot be confirmed: the relay sends no text messages to this number",
                        de: "kann nicht bestätigt werden, denn das Relay sendet keine SMS an diese Nummer"))
            ])
        }
    }

    /// Whether the codes of a factor can reach the user, as far as that depends on the settings.
    public func canSend(_ kind: Factor) -> Bool { !kind.isSent || courier(for: kind) != nil }

    func courier(for kind: Factor) -> (any MessageCourier)? { kind == .mail ? mail : texts }

    static func takenFault(_ kind: Factor) -> FieldFault {
        FieldFault(
            Address.parameter(kind), .taken,
            LocalizedText(
                "belongs to another user of this website", de: "gehört einem anderen Benutzer dieser Website"))
    }
}
