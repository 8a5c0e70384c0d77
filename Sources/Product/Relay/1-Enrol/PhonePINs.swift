import Crypto
import Domain
import Log
import World

/// The store port for the PINs of phones (verb Enrol).
public protocol PINStore: Sendable {
    /// Returns the PIN of an active phone; nil if the phone is no longer active.
    func pin(of phone: PhoneCredential) async throws(StoreFailure) -> PhonePIN?
    /// Returns the PIN of an active phone, and the policy of its user's group; nil if the phone is
    /// no longer active.
    func pinAndPolicy(of phone: PhoneCredential) async throws(StoreFailure) -> (pin: PhonePIN, policy: String?)?
    /// Counts a wrong PIN or PUK, once for each operation, unless it is locked or was replaced.
    ///
    /// - Returns: the PIN afterwards, and whether this change has locked it; nil if the phone is no
    ///   longer active.
    func countWrong(_ wrong: WrongPIN, as operation: Operation) async throws(StoreFailure) -> CountedPIN?
    /// Stores a new PIN.
    ///
    /// - Returns: whether it was stored now; false if another relay has stored the same statement
    ///   before, and nil if the stored PIN is not the one that was read.
    func store(_ change: PINChange, as operation: Operation) async throws(StoreFailure) -> Bool?
    /// Whether this operation has stored a PIN of the phone.
    func hasChangedPIN(of phone: PhoneCredential, by operation: Operation) async throws(StoreFailure) -> Bool
    /// Whether one of these keys has another purpose, or had one.
    func isUsed(anyOf thumbprints: [[UInt8]]) async throws(StoreFailure) -> Bool
}

/// A wrong PIN or PUK.
public struct WrongPIN: Sendable {
    public enum Kind: String, Sendable {
        case pin, puk
    }

    public let kind: Kind
    public let phone: PhoneCredential
    /// The version of the PIN with which the signature was compared.
    public let version: Int
    /// The challenge that the phone approved; nil for a change of the PIN.
    public let challenge: ChallengeID?
    public let at: Timestamp

    public init(_ kind: Kind, of phone: PhoneCredential, version: Int, challenge: ChallengeID?, at: Timestamp) {
        self.kind = kind
        self.phone = phone
        self.version = version
        self.challenge = challenge
        self.at = at
    }
}

public struct CountedPIN: Sendable, Equatable {
    public let pin: PhonePIN
    /// Whether it was counted now; false for a repetition, and for one that came after the lock.
    public let isNew: Bool
    /// Whether this wrong one has locked the PIN or the PUK.
    public let isLocking: Bool

    public init(pin: PhonePIN, isNew: Bool, isLocking: Bool) {
        self.pin = pin
        self.isNew = isNew
        self.isLocking = isLocking
    }
}

/// A new PIN, which is stored only if the present one is as it was read.
public struct PINChange: Sendable {
    public let phone: PhoneCredential
    public let change: PINStatement.Change
    public let key: [UInt8]
    /// The new key of the PUK; nil to keep the present one.
    public let pukKey: [UInt8]?
    public let present: PhonePIN
    public let at: Timestamp

    public init(
        of phone: PhoneCredential, _ change: PINStatement.Change, key: [UInt8], pukKey: [UInt8]?, present: PhonePIN,
        at: Timestamp
    ) {
        self.phone = phone
        self.change = change
        self.key = key
        self.pukKey = pukKey
        self.present = present
        self.at = at
    }

    /// The event in log and audit.
    public var event: StaticString {
        switch change {
        case .set: "pin.set"
        case .change: "pin.changed"
        case .reset: "pin.reset"
        case .unlock: "pin.unlocked"
        }
    }
}

/// The reason why an answer or a change was refused because of the PIN. Nothing has changed but the
/// count of wrong ones.
public enum PINRefusal: Sendable, Equatable {
    /// The website requires a PIN, and the phone has none.
    case unset
    /// The phone has a PIN, and the answer has no signature of it.
    case unsigned
    case wrong(triesLeft: Int)
    case locked
    case pukWrong(triesLeft: Int)
    case pukLocked
    case unlockWrong(triesLeft: Int)
    /// No code of the help desk is valid for this phone.
    case unlockVoid
}

/// A phone sets, changes and resets its PIN.
///
/// - The phone's key signs each statement (`PINStatement`). The old PIN's key signs a change, too,
///   and the PUK's key a reset.
/// - A wrong PIN or PUK is counted in a script of its own, and the count is part of every guard. If
///   another one was counted between the read and the write, the relay reads and judges again. So
///   of any number of guesses at the same time, over any number of relays, three wrong PINs and five
///   wrong PUKs are answered as wrong. All others get the same refusal, whether they were right or
///   not; only the time until it may differ.
///
/// Invariants:
///
/// - A signature counts once. The operation of the count is derived from the text that was signed
///   and from the signature, so sending both again costs no further try.
/// - A statement is known as a repetition by its own bytes and signatures, which only its sender
///   has. Its keys are compared with nothing: whoever holds the phone chooses them, and an answer
///   that depended on them would tell whether a PIN is right, without a count.
///
/// Tests: `RelayTests/PhonePINTests.swift`, `PINGuessTests.swift`.
extension Relay {
    /// The most changes by others after which a request is judged again.
    static let pinAttempts = 8

    /// Sets, changes or resets the PIN of a phone.
    ///
    /// - Parameters:
    ///   - compact: a `twoefay-pin+jwt`.
    ///   - pinSignature: the signature of a change by the old PIN's key.
    ///   - pukSignature: the signature of a reset by the PUK's key.
    /// - Returns: the PIN afterwards.
    public func changePIN(
        _ compact: String, pinSignature: String?, pukSignature: String?, by phone: PhoneCredential
    ) async throws(Refusal) -> PhonePIN {
        // Each change is a row of the audit, and some are announced.
        if let wait = pinBudget.wait(phone.id, at: time.instant()) {
            metrics.reached(.report)
            throw .limited(retryAfter: wait)
        }
        guard let key = try? P256PublicKey(x963: phone.publicKey) else {
            log.error("device.key", [.device: phone.id.text])
            throw .broken
        }
        let audience = SignedDecision.audience(origin: settings.origin, website: phone.website.name)
        guard let statement = PINStatement(compact, of: phone.id, key: key, audience: audience) else {
            throw .invalid([
                FieldFault(
                    "pin", .format,
                    LocalizedText(
                        "must be a twoefay-pin+jwt that this phone has signed",
                        de: "muss ein twoefay-pin+jwt sein, das dieses Telefon signiert hat"))
            ])
        }
        let operation = operations.fixed(
            "pin",
            [compact, pinSignature ?? "", pukSignature ?? ""].reduce(phone.id.bytes) {
                $0 + SHA256.hash(Array($1.utf8))
            })
        for _ in 0..<Self.pinAttempts {
            let present = try await pin(of: phone)
            if statement.version == present.version, try await isRepeated(operation, by: phone) { return present }
            try await judge(statement, present, pinSignature, pukSignature, by: phone)
            try await requireOwnKeys(of: statement)
            let change = PINChange(
                of: phone, statement.change, key: statement.key.x963, pukKey: statement.pukKey?.x963,
                present: present, at: time.now())
            let stored = try await withStore("pin") { () async throws(StoreFailure) in
                try await store.store(change, as: operation)
            }
            guard let isNew = stored else { continue }
            guard isNew else { return try await pin(of: phone) }
            metrics.changed(pin: PINOutcome(change.change))
            log.info(
                change.event, [.website: phone.website.name, .user: phone.user.text, .device: phone.id.text])
            scheduleWebhooks()
            return try await pin(of: phone)
        }
        throw .limited(retryAfter: .zero)
    }

    /// Refuses keys with another purpose: all that such a key has signed could count as a PIN. Keys of
    /// PINs are not recorded, because a thumbprint would let somebody test PINs for ever. So a later
    /// key of another purpose is not compared with them.
    private func requireOwnKeys(of statement: PINStatement) async throws(Refusal) {
        let keys = [statement.key] + (statement.pukKey.map { [$0] } ?? [])
        let isUsed = try await withStore("pin") { () async throws(StoreFailure) in
            try await store.isUsed(anyOf: keys.map(\.spkiThumbprint))
        }
        guard isUsed else { return }
        throw .invalid([
            FieldFault(
                "pin", .format,
                LocalizedText(
                    "must have keys that have no other use",
                    de: "muss Schlüssel haben, die keinen anderen Zweck haben"))
        ])
    }

    private func isRepeated(_ operation: Operation, by phone: PhoneCredential) async throws(Refusal) -> Bool {
        try await withStore("pin") { () async throws(StoreFailure) in
            try await store.hasChangedPIN(of: phone, by: operation)
        }
    }

    /// Returns the phone's present PIN.
    public func pin(of phone: PhoneCredential) async throws(Refusal) -> PhonePIN {
        let pin = try await withStore("pin") { () async throws(StoreFailure) in try await store.pin(of: phone) }
        guard let pin else { throw .unauthenticated }
        return pin
    }

    /// Refuses a change that does not fit the present PIN, or whose proof is wrong.
    private func judge(
        _ statement: PINStatement, _ present: PhonePIN, _ pinSignature: String?, _ pukSignature: String?,
        by phone: PhoneCredential
    ) async throws(Refusal) {
        guard statement.version == present.version + 1 else {
            throw .conflict([
                FieldFault(
                    "pin", .mismatch,
                    LocalizedText(
                        "must have the version \(present.version + 1): GET /device/pin shows the present one",
                        de: "muss die Version \(present.version + 1) haben: GET /device/pin zeigt die jetzige"))
            ])
        }
        guard (statement.change == .set) == (present.key == nil) else { throw Self.wrongChange(present) }
        switch statement.change {
        case .set: break
        case .change:
            guard !present.isLocked else { throw .pin(.locked) }
            guard let pinSignature else { throw .invalid([.missing("pin_signature")]) }
            try await compare(
                pinSignature, over: statement.signingInput, .pin, present, of: phone, challenge: nil)
        case .reset:
            guard !present.isPUKLocked else { throw .pin(.pukLocked) }
            guard let pukSignature else { throw .invalid([.missing("puk_signature")]) }
            try await compare(
                pukSignature, over: statement.signingInput, .puk, present, of: phone, challenge: nil)
        case .unlock: try await judgeUnlock(statement, present, by: phone)
        }
    }

    private static func wrongChange(_ present: PhonePIN) -> Refusal {
        .conflict([
            FieldFault(
                "pin", .state,
                present.key == nil
                    ? LocalizedText(
                        "must set the first PIN, because the phone has none",
                        de: "muss die erste PIN setzen, denn das Telefon hat keine")
                    : LocalizedText(
                        "must change or reset the PIN, because the phone has one",
                        de: "muss die PIN ändern oder zurücksetzen, denn das Telefon hat eine"))
        ])
    }

    /// Compares a signature with the key of the PIN or PUK. Counts a wrong one, and refuses it.
    func compare(
        _ signature: String, over bytes: [UInt8], _ kind: WrongPIN.Kind, _ present: PhonePIN,
        of phone: PhoneCredential, challenge: ChallengeID?
    ) async throws(Refusal) {
        let key = kind == .pin ? present.key : present.pukKey
        if let key, PINSignature.isRight(signature, over: bytes, key: key) { return }
        let wrong = WrongPIN(kind, of: phone, version: present.version, challenge: challenge, at: time.now())
        let operation = operations.fixed(
            "wrong \(kind.rawValue)", phone.id.bytes + SHA256.hash(bytes) + SHA256.hash(Array(signature.utf8)))
        let counted = try await withStore("pin") { () async throws(StoreFailure) in
            try await store.countWrong(wrong, as: operation)
        }
        guard let counted else { throw .unauthenticated }
        let pin = counted.pin
        // Another PIN was set meanwhile, and this signature was not compared with it.
        guard pin.version == present.version else { throw .limited(retryAfter: .zero) }
        follow(counted, wrong)
        switch kind {
        case .pin: throw .pin(pin.isLocked ? .locked : .wrong(triesLeft: pin.triesLeft))
        case .puk: throw .pin(pin.isPUKLocked ? .pukLocked : .pukWrong(triesLeft: pin.pukTriesLeft))
        }
    }

    private func follow(_ counted: CountedPIN, _ wrong: WrongPIN) {
        guard counted.isNew else { return }
        let phone = wrong.phone
        metrics.changed(pin: wrong.kind == .pin ? .wrong : .pukWrong)
        log.info(
            "pin.wrong",
            [
                .website: phone.website.name, .user: phone.user.text, .device: phone.id.text,
                .challenge: wrong.challenge?.text, .kind: wrong.kind.rawValue,
            ])
        guard counted.isLocking else { return }
        metrics.changed(pin: wrong.kind == .pin ? .locked : .pukLocked)
        log.warning(
            "pin.locked",
            [
                .website: phone.website.name, .user: phone.user.text, .device: phone.id.text,
                .challenge: wrong.challenge?.text, .kind: wrong.kind.rawValue,
            ])
        scheduleWebhooks()
    }
}

/// The label for what happened to a PIN or PUK.
enum PINOutcome: String, CaseIterable {
    case set, changed, reset, unlocked, wrong, locked
    case pukWrong = "puk_wrong"
    case pukLocked = "puk_locked"
    case unlockWrong = "unlock_wrong"

    init(_ change: PINStatement.Change) {
        self =
            switch change {
            case .set: .set
            case .change: .changed
            case .reset: .reset
            case .unlock: .unlocked
            }
    }
}
