import Bytes
import Crypto
import Domain
import Log
import World

/// The store port for code factors (verb Enrol).
public protocol FactorStore: Sendable {
    /// Returns the active and the waiting code factors of a user.
    func factors(of user: UserID, at: Timestamp) async throws(StoreFailure) -> [CodeFactor]
    /// Stores a new factor if the guards allow it.
    func enrol(_ enrolment: FactorEnrolment, website: WebsiteID, as operation: Operation)
        async throws(StoreFailure) -> EnrolOutcome
    /// Makes a waiting factor active, in the place of an earlier one of its kind.
    ///
    /// - Parameters:
    ///   - failures: the user's consecutive wrong codes, as they were read.
    ///   - isVouchedFor: whether the website's approval is enough. If not, the user must have
    ///     approved the factor, or no factor of the user was ever bound.
    func confirm(
        _ factor: CodeFactor, of user: UserID, failures: Int, counter: Int64, isVouchedFor: Bool, at: Timestamp,
        as operation: Operation
    ) async throws(StoreFailure) -> CodeUseOutcome
    /// Stores the next counter of a hardware token that was resynchronised.
    func resynchronise(
        _ factor: CodeFactor, of user: UserID, failures: Int, counter: Int64, at: Timestamp, as operation: Operation
    ) async throws(StoreFailure) -> CodeUseOutcome
    /// Uses up a code of an active app, outside a login.
    func use(
        _ factor: CodeFactor, of user: UserID, failures: Int, step: Int64, at: Timestamp, as operation: Operation
    ) async throws(StoreFailure) -> CodeUseOutcome
    /// Returns the position of an unused recovery code of this set; nil if there is none.
    func position(ofRecovery digest: [UInt8], in factor: FactorID, of user: UserID)
        async throws(StoreFailure) -> Int64?
    /// Makes new recovery codes active, in the place of earlier ones, because the one at the asked
    /// position was typed back.
    ///
    /// - Parameter isVouchedFor: as for other factors.
    func confirm(
        recovery factor: CodeFactor, of user: UserID, digest: [UInt8], failures: Int, isVouchedFor: Bool,
        at: Timestamp, as operation: Operation
    ) async throws(StoreFailure) -> CodeUseOutcome
    /// Removes the factor of that kind, active or waiting. Returns false if there was none.
    func drop(_ kind: Factor, of user: UserID, by doer: ChangeAuthor, at: Timestamp, as operation: Operation)
        async throws(StoreFailure) -> Bool
    /// Uses a recovery code, makes the user active, and resets wrong numbers and wrong recovery
    /// codes. Returns false if the code does not exist or was used before. Also returns false if
    /// codes are locked or their failures have changed, or if the user is active or locked by an
    /// operator.
    ///
    /// - Parameter lifted: the values before and after, for the audit.
    func unlock(
        _ user: UserID, recovery digest: [UInt8], of factor: FactorID, failures: Int, lifting lifted: ChangedValues,
        at: Timestamp, as operation: Operation
    ) async throws(StoreFailure) -> Bool
    /// Returns the audit event of the change that this operation made; nil if it made none.
    func recordCodeUse(_ operation: OperationID) async throws(StoreFailure) -> String?
}

/// A factor to be stored.
public struct NewFactor: Sendable {
    public let id: FactorID
    public let user: UserID
    public let kind: Factor
    public let state: FactorState
    public let sealed: SealedSecret?
    public let algorithm: OTPAlgorithm
    public let digits: Int
    public let period: Int?
    public let counter: Int64
    public let address: String?
    /// The challenge with which the user approved; nil if the user was not asked.
    public let approvedBy: Approved?
    /// The recovery by which the factor replaces a lost one; nil for others.
    public let recovery: RecoveryUse?
    public let at: Timestamp

    public init(
        id: FactorID, user: UserID, kind: Factor, state: FactorState, sealed: SealedSecret?,
        algorithm: OTPAlgorithm = .sha1, digits: Int = 6, period: Int? = nil, counter: Int64 = 0,
        address: String? = nil, approvedBy: Approved? = nil,
        recovery: RecoveryUse? = nil, at: Timestamp
    ) {
        self.id = id
        self.user = user
        self.kind = kind
        self.state = state
        self.sealed = sealed
        self.algorithm = algorithm
        self.digits = digits
        self.period = period
        self.counter = counter
        self.address = address
        self.approvedBy = approvedBy
        self.recovery = recovery
        self.at = at
    }
}

/// A sealed secret, and the id of the key that sealed it.
public struct SealedSecret: Sendable, Equatable {
    public let bytes: [UInt8]
    public let key: String

    public init(bytes: [UInt8], key: String) {
        self.bytes = bytes
        self.key = key
    }
}

/// A factor to be stored, with the conditions for that.
public struct FactorEnrolment: Sendable {
    public let factor: NewFactor
    /// Whether the factor may replace an active one.
    public let mayReplace: Bool
    /// Whether the user or the website approved the factor. If not, it is stored only if no factor
    /// of the user was ever bound.
    public let isVouchedFor: Bool
    /// The digests of recovery codes; empty for other kinds.
    public let codes: [[UInt8]]
    /// The sealed secret from which a repetition answers.
    public let secret: StoredSecret?

    public init(
        _ factor: NewFactor, mayReplace: Bool, isVouchedFor: Bool, codes: [[UInt8]] = [], secret: StoredSecret? = nil
    ) {
        self.factor = factor
        self.mayReplace = mayReplace
        self.isVouchedFor = isVouchedFor
        self.codes = codes
        self.secret = secret
    }
}

/// The outcome of storing a new factor.
public enum EnrolOutcome: Sendable, Equatable {
    /// The factor is stored. `secret` is the sealed operation secret from the store.
    case done(secret: [UInt8]?)
    /// The user does not exist (any more).
    case gone
    /// The user is locked, frozen, disabled or expired.
    case barred(UserState)
    /// The user has an active factor of this kind already.
    case taken
    /// The approval was used before, or the user must approve by now.
    case refused
}

/// The outcome of storing that a right code was used.
public enum CodeUseOutcome: Sendable, Equatable {
    case done
    /// The factor has changed since it was read.
    case changed
    /// Another user of the website has the address by now.
    case taken
}

extension Relay {
    /// The time that a new factor waits for its first code.
    static let confirmationTime = NewActivation.lifetime

    func factors(of user: UserID) async throws(Refusal) -> [CodeFactor] {
        try await withStore("factors") { () async throws(StoreFailure) in
            try await store.factors(of: user, at: time.now())
        }
    }

    /// Returns the user's code factors in the order in which they are tried, each active one before
    /// the waiting one that is to replace it. Factors that were not confirmed before they expired
    /// are left out.
    public func codeFactors(of user: UserRow) async throws(Refusal) -> [CodeFactor] {
        let (factors, now) = (try await factors(of: user.id), time.now())
        return Factor.codes.flatMap { kind in
            [FactorState.active, .waiting].flatMap { state in
                factors.filter { $0.kind == kind && $0.state == state && !$0.isOver(at: now) }
            }
        }
    }

    func seal(
        _ secret: Secret, row: FactorID, kind: Factor, user: UserID, website: WebsiteID
    ) throws(Refusal) -> SealedSecret {
        do {
            return try SealedSecret(secret, row: row, kind: kind, user: user, website: website, by: sealer, randomness)
        } catch {
            log.error("factor.seal", [.error: "\(error)"])
            throw .broken
        }
    }

    /// Returns the user's approval of this factor; nil if the user need not approve.
    func word(
        for kind: Factor, address: String? = nil, approval: ChallengeID?, _ user: UserRow, _ website: Website,
        _ operation: Operation
    ) async throws(Refusal) -> Approved? {
        guard user.state != .expired else { throw .userExpired }
        if !kind.isSent { try requireIdentity(of: user, website) }
        guard user.isProved, website.policy.activationApproval == nil else { return nil }
        return try await approved(
            .code(kind, of: user.id, address: address, sealer), by: approval, user, website, operation)
    }

    /// Refuses a factor that has waited since before the user had a factor of their own, unless the
    /// user approved it. Somebody else may have had the session then. An address of the
    /// registration needs no approval.
    func requireWord(
        for waiting: CodeFactor, _ parameter: String, _ user: UserRow, _ website: Website
    ) throws(Refusal) {
        guard waiting.state == .waiting, user.isProved, !isVouchedFor(nil, website), !waiting.isApproved else { return }
        let known = [user.email, user.phone].compactMap { $0.map { Array($0.utf8) } }
        if let address = waiting.address, known.contains(Array(address.utf8)) { return }
        throw .conflict([
            FieldFault(
                parameter, .state,
                LocalizedText(
                    "was started before the user had a factor: start it again, and the relay asks the user to approve",
                    de:
                        "wurde begonnen, bevor der Benutzer einen Faktor hatte: Beginnen Sie erneut, dann bittet das Relay "
                        + "den Benutzer um Bestätigung"))
        ])
    }

    /// Stores a new factor, and turns other outcomes into refusals.
    ///
    /// - Returns: the sealed operation secret from the store; nil if none is stored.
    func enrol(
        _ enrolling: FactorEnrolment, for user: UserRow, by website: Website, as operation: Operation
    ) async throws(Refusal) -> [UInt8]? {
        let factor = enrolling.factor
        let outcome = try await withStore("enrolFactor") { () async throws(StoreFailure) in
            try await store.enrol(enrolling, website: website.id, as: operation)
        }
        switch outcome {
        case .done(let secret):
            log.info(
                factor.state == .active ? "factor.bound" : "factor.waiting",
                [.website: website.name, .user: user.id.text, .factor: factor.kind.rawValue])
            return secret
        case .gone: throw .notFound
        case .barred(let state): throw Self.barred(state)
        case .taken:
            throw .conflict([
                FieldFault(
                    factor.kind.rawValue, .taken,
                    LocalizedText(
                        "exists already: delete it first, or resynchronise it",
                        de: "existiert schon: Löschen Sie den Faktor zuerst, oder synchronisieren Sie ihn neu"))
            ])
        case .refused:
            guard factor.approvedBy == nil else { throw Self.noApproval }
            guard factor.recovery == nil else { throw .notFound }
            // The user has got a factor of their own after it was read.
            let now = try await self.user(named: user.username, of: website)
            _ = try await word(
                for: factor.kind, address: factor.address, approval: nil, now, website, operation)
            throw .unavailable
        }
    }

    static func barred(_ state: UserState) -> Refusal {
        guard state != .disabled else { return .disabled }
        guard state != .expired else { return .userExpired }
        return .forbidden(
            LocalizedText(
                "The user is \(state.rawValue) and cannot get a factor: unlock the user first, POST /user/…/unlock",
                de: "Der Benutzer kann in seinem Zustand (\(state.rawValue)) keinen Faktor erhalten: Entsperren Sie "
                    + "ihn zuerst, POST /user/…/unlock"))
    }
}

extension SealedSecret {
    public init(
        _ secret: Secret, row: FactorID, kind: Factor, user: UserID, website: WebsiteID, by sealer: Sealer,
        _ randomness: any Randomness
    ) throws(CryptoFailure) {
        self.init(
            bytes: try sealer.seal(
                secret.reveal(),
                associated: FactorSeal.associated(website: website, user: user, kind: kind, row: row),
                randomness: randomness), key: sealer.currentID)
    }
}

extension CodeFactor {
    /// Whether the factor was not confirmed before it expired. An address does not expire, because
    /// a code can be sent to it again. A removed address counts as expired, but its row stays with
    /// its counts. Recovery codes do not expire either: they are on paper.
    func isOver(at now: Timestamp) -> Bool {
        guard state == .waiting, kind != .recovery else { return false }
        return kind.isSent ? address == nil : now >= createdAt + Relay.confirmationTime
    }

    /// The address in a form that its owner recognises, and that does not reveal it to others.
    public var maskedAddress: String? { address.map(Address.masked) }
}
