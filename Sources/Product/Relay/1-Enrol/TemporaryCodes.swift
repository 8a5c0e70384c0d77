import Bytes
import Crypto
import Domain
import World

/// A temporary code that is about to be given out by an operator.
///
/// The operator's tool writes it, and shows it once. A relay judges it with the other codes
/// (`Backup.swift`).
///
/// Invariants:
///
/// - A user has at most one code. Another one replaces it only if the operator has seen it.
/// - Each use is a part of the script that ends its challenge, and names the number of uses that is
///   left. So no use counts for two challenges, however many relays judge at once.
/// - A wrong code counts in the budget that all codes of the user share.
/// - A code works only while its user is active. It lifts neither a lock nor a freeze, and a fraud
///   report makes it void.
/// - A code approves no change, except an activation if it may enrol. The script repeats this check.
///
/// Tests: `RelayTests/TemporaryCodeTests.swift`, `TemporaryCodeAttackTests.swift`.
public struct NewTemporaryCode: Sendable {
    /// The id of the row of the table `factor` that stands for the code.
    public let id: FactorID
    public let user: UserID
    public let digest: [UInt8]
    public let uses: Int
    /// Whether it may approve that a phone is bound.
    public let mayEnrol: Bool
    public let at: Timestamp
    public let expiresAt: Timestamp

    /// Returns nil if the text is no code.
    ///
    /// - Parameter operation: the operation that gives the code out.
    public init?(
        _ text: String, for user: UserID, uses: Int, mayEnrol: Bool, life: Duration, at now: Timestamp,
        as operation: Operation, by sealer: Sealer
    ) {
        guard let digest = TemporaryCode.digest(text, user: user, sealer) else { return nil }
        id = operation.identifier("temporary code")
        self.user = user
        self.digest = digest
        self.uses = min(max(uses, TemporaryCode.uses.lowerBound), TemporaryCode.uses.upperBound)
        self.mayEnrol = mayEnrol
        at = now
        expiresAt = now + min(max(life, TemporaryCode.lives.lowerBound), TemporaryCode.lives.upperBound)
    }

    /// The rights of the code, for the audit.
    public var summary: String {
        "until \(expiresAt.rfc3339), \(uses == 1 ? "once" : "\(uses) times"), "
            + (mayEnrol ? "may bind a phone" : "binds no phone")
    }
}

/// A temporary code that can be used now.
public struct OpenTemporaryCode: Sendable, Equatable {
    public let factor: FactorID
    public let digest: [UInt8]
    public let usesLeft: Int
    public let mayEnrol: Bool

    public init(factor: FactorID, digest: [UInt8], usesLeft: Int, mayEnrol: Bool) {
        self.factor = factor
        self.digest = digest
        self.usesLeft = usesLeft
        self.mayEnrol = mayEnrol
    }

    /// Whether one of the digests of the typed text is that of the code.
    func matches(_ typed: [[UInt8]]) -> Bool {
        // All are compared, so the time does not depend on the key.
        typed.count { Secret.matches($0, digest) } > 0
    }

    /// Whether the code may answer a challenge.
    ///
    /// - Parameters:
    ///   - approves: the digest of the change that the challenge approves; nil for a login.
    ///   - enrolling: the digest of the activation of a phone.
    func mayAnswer(_ approves: [UInt8]?, enrolling: [UInt8]) -> Bool {
        approves.map { mayEnrol && $0 == enrolling } ?? true
    }
}

extension Relay {
    /// The refusal of a right code that may not approve this change.
    static let bindsNothing = Refusal.forbidden(
        LocalizedText(
            "This temporary code logs in, but approves no phone and no other change: an operator can give out one that may "
                + "bind a phone, twoefay user temporary-code --may-enrol",
            de: "Mit diesem vorläufigen Code kann man sich anmelden, aber weder ein Telefon noch eine andere Änderung "
                + "bestätigen: Der Betreiber kann einen Code ausgeben, mit dem sich ein Telefon verbinden lässt, twoefay "
                + "user temporary-code --may-enrol"))
}
