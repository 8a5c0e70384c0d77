import Bytes
import Crypto
import Domain
import Log
import World

/// Enrol: factors that are answered by a code.
public protocol FactorStore: Sendable {
    /// Those that count and those that wait.
    func factors(of user: UserID) async throws(StoreFailure) -> [CodeFactor]
    func enrol(_ enrolment: FactorEnrolment, website: WebsiteID, as operation: Operation)
        async throws(StoreFailure) -> EnrolOutcome
    /// The waiting factor counts from now on, in the place of one that did.
    ///
    /// - Parameters:
    ///   - failures: wrong codes of the user in a row, as they were read.
    ///   - isVouchedFor: the website's word is enough; without, the user has approved of it, or nothing is bound of the
    ///     user's own yet.
    func confirm(
        _ factor: CodeFactor, of user: UserID, failures: Int, counter: Int64, isVouchedFor: Bool, at: Timestamp,
        as operation: Operation
    ) async throws(StoreFailure) -> CodeUseOutcome
    /// A hardware token was found again: its next counter.
    func resynchronise(
        _ factor: CodeFactor, of user: UserID, failures: Int, counter: Int64, at: Timestamp, as operation: Operation
    ) async throws(StoreFailure) -> CodeUseOutcome
    /// Drops the factor of that kind, whether it counts or waits. False when there was none.
    func drop(_ kind: Factor, of user: UserID, by doer: ChangeAuthor, at: Timestamp, as operation: Operation)
        async throws(StoreFailure) -> Bool
    /// Uses a recovery code up and makes the user active, with no wrong numbers and no wrong recovery codes. False when
    /// there is no such code left, codes are locked or have other failures than were read, or the user is active or
    /// locked by an operator.
    func unlock(
        _ user: UserID, recovery digest: [UInt8], of factor: FactorID, failures: Int, at: Timestamp,
        as operation: Operation
    ) async throws(StoreFailure) -> Bool
    /// What the audit calls the change that this operation made; nil where it has made none.
    func recordCodeUse(_ operation: OperationID) async throws(StoreFailure) -> String?
}

/// A factor as it is written.
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
    /// Of the user's word: with what they gave it.
    public let approvedBy: Approved?
    public let at: Timestamp

    public init(
        id: FactorID, user: UserID, kind: Factor, state: FactorState, sealed: SealedSecret?,
        algorithm: OTPAlgorithm = .sha1, digits: Int = 6, period: Int? = nil, counter: Int64 = 0,
        address: String? = nil, approvedBy: Approved? = nil, at: Timestamp
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
        self.at = at
    }
}

/// The secret of a factor as the store has it, and the id of the key that sealed it.
public struct SealedSecret: Sendable, Equatable {
    public let bytes: [UInt8]
    public let key: String

    public init(bytes: [UInt8], key: String) {
        self.bytes = bytes
        self.key = key
    }
}

/// A factor with what has to be so when it is written.
public struct FactorEnrolment: Sendable {
    public let factor: NewFactor
    /// It may take the place of one that counts.
    public let mayReplace: Bool
    /// Somebody's word was given for it: without, nothing may be bound of the user's own yet.
    public let isVouchedFor: Bool
    /// Of recovery codes: their digests.
    public let codes: [[UInt8]]
    /// The secret that a repetition answers with.
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

public enum EnrolOutcome: Sendable, Equatable {
    /// With the operation's secret as it is stored, sealed.
    case done(secret: [UInt8]?)
    /// There is no such user (any more).
    case gone
    /// The user is locked or frozen.
    case barred(UserState)
    /// There is one already that counts.
    case taken
    /// The approval was used, or the user has become one who has to be asked.
    case refused
}

/// What came of writing a right code down.
public enum CodeUseOutcome: Sendable, Equatable {
    case done
    /// The factor is not as it was read.
    case changed
    /// Another user of the website has that address by now.
    case taken
}

extension Relay {
    /// How long a factor waits for its first code.
    static let confirmationTime = NewActivation.lifetime

    func factors(of user: UserID) async throws(Refusal) -> [CodeFactor] {
        try await withStore("factors") { () async throws(StoreFailure) in try await store.factors(of: user) }
    }

    /// In the order in which they are tried, each that counts before the one that is to take its place. What was not
    /// confirmed in time is none.
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

    /// With what the user has approved of this factor; nil where they need not be asked.
    func word(
        for kind: Factor, address: String? = nil, approval: ChallengeID?, _ user: UserRow, _ website: Website,
        _ operation: Operation
    ) async throws(Refusal) -> Approved? {
        guard user.isProved, website.policy.activationApproval == nil else { return nil }
        return try await approved(
            .code(kind, of: user.id, address: address), by: approval, user, website, operation)
    }

    /// What waits since a time in which nobody had to be asked counts no more without the user's approval once they have a
    /// factor of their own: it may be somebody else's who had the session then. An address of the registration is known.
    func requireWord(
        for waiting: CodeFactor, _ parameter: String, _ user: UserRow, _ website: Website
    ) throws(Refusal) {
        guard waiting.state == .waiting, user.isProved, !isVouchedFor(nil, website), !waiting.isApproved else { return }
        let known = [user.email, user.phone].compactMap { $0.map { Array($0.utf8) } }
        if let address = waiting.address, known.contains(Array(address.utf8)) { return }
        throw .conflict([
            FieldFault(
                parameter, .state,
                "was begun before the user had a factor of their own: begin it anew, and the user is asked to approve")
        ])
    }

    /// Writes a factor down.
    ///
    /// - Returns: the operation's secret as it is stored, sealed.
    func enrol(
        _ enrolling: FactorEnrolment, for user: UserRow, by website: Website, as operation: Operation
    ) async throws(Refusal) -> [UInt8]? {
        let factor = enrolling.factor
        let outcome = try await withStore("enrol") { () async throws(StoreFailure) in
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
                FieldFault(factor.kind.rawValue, .taken, "is there already: DELETE it first, or resynchronise it")
            ])
        case .refused:
            guard factor.approvedBy == nil else { throw Self.noApproval }
            // Between the reading and the writing the user has got a factor of their own.
            let now = try await self.user(named: user.username, of: website)
            _ = try await word(
                for: factor.kind, address: factor.address, approval: nil, now, website, operation)
            throw .unavailable
        }
    }

    static func barred(_ state: UserState) -> Refusal {
        .forbidden("The user is \(state.rawValue), and gets no factor before that is lifted: POST /user/…/unlock")
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
    /// It was not confirmed by a first code in time. Addresses are: a code can be sent to them again, until they are taken
    /// away, which leaves what is counted.
    func isOver(at now: Timestamp) -> Bool {
        guard state == .waiting else { return false }
        return kind.isSent ? address == nil : now >= createdAt + Relay.confirmationTime
    }

    /// The address, so that its owner knows it again and nobody else gets to know it.
    public var maskedAddress: String? {
        guard let address else { return nil }
        if let at = address.lastIndex(of: "@") { return "\(address.prefix(1))…\(address[at...])" }
        return "\(address.prefix(3))…\(address.suffix(2))"
    }
}
