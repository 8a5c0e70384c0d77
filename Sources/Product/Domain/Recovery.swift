import World

/// The id of a recovery, a row of the table `recovery`.
public typealias RecoveryID = Identifier<IdentifierKind.Recovery>

extension IdentifierKind {
    public enum Recovery: Sendable {}
}

/// The stored state of a recovery. The raw values are in the database.
public enum RecoveryState: String, Sendable, CaseIterable {
    /// The relay mails the link.
    case sent
    /// The website handed the link in; a second proof is missing.
    case opened
    /// The second proof was given. The change is possible from `readyAt` on.
    case proved
    /// The lost factor was replaced.
    case done
    case cancelled
}

/// The state of a recovery as others see it, which also depends on the time. The raw values are on
/// the wire.
public enum RecoveryPhase: String, Sendable, CaseIterable {
    case sent, opened, waiting, ready, done, cancelled, expired
}

/// The second proof of a recovery, beside the link to the mailbox.
public enum RecoveryProof: String, Sendable, CaseIterable {
    case phone, totp, hotp, sms, recovery, `operator`

    /// The proof that an answer by this factor gives. Nil for a mail, which may arrive at the mailbox
    /// of the link, and for a temporary code, which proves no recovery.
    public init?(_ factor: Factor) {
        switch factor {
        case .push, .pull: self = .phone
        case .totp: self = .totp
        case .hotp: self = .hotp
        case .sms: self = .sms
        case .recovery: self = .recovery
        case .mail, .operator: return nil
        }
    }
}

/// The life of a recovery: a user's way back from a lost factor.
///
/// `sent` → `opened` → `proved` → `done`. Each state but the last may end as `cancelled`, and ends
/// by itself at `expiresAt`. Every step is a function of the stored values and the time, so relays
/// need no timer: a recovery that waits is ready as soon as its time has come.
///
/// A recovery that a new link continues needs its proof again, and then waits anew. Otherwise a thief
/// of the mailbox with one more factor could use the time that the owner has waited.
///
/// The wait protects only an owner who knows of it. So it begins when a mail server has accepted an
/// announcement, unless a phone has approved the change.
public struct RecoveryLife: Sendable, Equatable {
    /// The lifetime of a link.
    public static let linkLife = Duration.seconds(900)
    /// The time for the second proof.
    public static let proofLife = Duration.seconds(3600)
    /// The time for the change, once it is possible.
    public static let changeLife = Duration.seconds(7 * 86_400)
    /// The age from which an address can give the second proof. A former address is told for as
    /// long.
    public static let addressAge = Duration.seconds(7 * 86_400)

    /// A step that is not possible in this state.
    public struct Impossible: Error, Equatable {
        public let phase: RecoveryPhase
    }

    public let state: RecoveryState
    /// The time from which the change is possible; nil until the second proof.
    public let readyAt: Timestamp?
    public let expiresAt: Timestamp
    /// When the first announcement was accepted, or a phone approved the change; nil until then.
    public let announcedAt: Timestamp?

    public init(state: RecoveryState, readyAt: Timestamp?, expiresAt: Timestamp, announcedAt: Timestamp? = nil) {
        self.state = state
        self.readyAt = readyAt
        self.expiresAt = expiresAt
        self.announcedAt = announcedAt
    }

    /// A recovery whose link is mailed now.
    public static func begun(at now: Timestamp) -> RecoveryLife {
        RecoveryLife(state: .sent, readyAt: nil, expiresAt: now + linkLife)
    }

    public func phase(at now: Timestamp) -> RecoveryPhase {
        switch state {
        case .done: return .done
        case .cancelled: return .cancelled
        case .sent, .opened, .proved: break
        }
        guard now < expiresAt else { return .expired }
        switch state {
        case .sent: return .sent
        case .proved: return announcedAt != nil && readyAt.map { now >= $0 } == true ? .ready : .waiting
        default: return .opened
        }
    }

    public func isOpen(at now: Timestamp) -> Bool {
        switch phase(at: now) {
        case .sent, .opened, .waiting, .ready: true
        case .done, .cancelled, .expired: false
        }
    }

    /// The life after the link was handed in.
    public func opened(at now: Timestamp) throws(Impossible) -> RecoveryLife {
        try require([.sent], at: now)
        return RecoveryLife(state: .opened, readyAt: nil, expiresAt: now + Self.proofLife)
    }

    /// The life after the second proof.
    ///
    /// - Parameter wait: the time until the change; a phone's proof needs none.
    public func proved(by proof: RecoveryProof, wait: Duration, at now: Timestamp) throws(Impossible) -> RecoveryLife {
        try require([.opened], at: now)
        let ready = proof == .phone ? now : now + wait
        return RecoveryLife(
            state: .proved, readyAt: ready, expiresAt: ready + Self.changeLife,
            announcedAt: proof == .phone ? now : nil)
    }

    /// The life after a mail server has accepted the first announcement. The wait then begins. A
    /// recovery that has expired does not begin again.
    ///
    /// - Parameter provedAt: when the second proof was given.
    public func announced(at now: Timestamp, since provedAt: Timestamp) -> RecoveryLife {
        guard state == .proved, announcedAt == nil, now < expiresAt, let readyAt else { return self }
        let ready = max(readyAt, now + (readyAt - provedAt))
        return RecoveryLife(
            state: state, readyAt: ready, expiresAt: ready + Self.changeLife, announcedAt: now)
    }

    /// Throws unless the change is possible now.
    public func requireReady(at now: Timestamp) throws(Impossible) { try require([.ready], at: now) }

    private func require(_ phases: [RecoveryPhase], at now: Timestamp) throws(Impossible) {
        let phase = phase(at: now)
        guard phases.contains(phase) else { throw Impossible(phase: phase) }
    }
}
