import Bytes
import Crypto
import Domain
import Log
import World

/// The store port for unlock codes (verb Enrol). The operator's tool issues them.
public protocol UnlockCodeStore: Sendable {
    /// Returns the sealed secret of an unlock code; nil if it is no longer stored.
    func unlockSecret(of operation: OperationID) async throws(StoreFailure) -> [UInt8]?
    /// Counts a wrong unlock code, once for each operation, unless the code is void or was replaced.
    ///
    /// - Returns: the PIN afterwards, and whether the code is now void; nil if the phone is no
    ///   longer active.
    func countWrong(_ wrong: WrongUnlockCode, as operation: Operation) async throws(StoreFailure) -> CountedPIN?
}

/// A wrong unlock code.
public struct WrongUnlockCode: Sendable {
    public let phone: PhoneCredential
    /// The code with which the typed one was compared.
    public let issued: UnlockCode.Issued
    public let at: Timestamp

    public init(phone: PhoneCredential, issued: UnlockCode.Issued, at: Timestamp) {
        self.phone = phone
        self.issued = issued
        self.at = at
    }
}

/// An unlock code that is about to be issued.
public struct NewUnlockCode: Sendable {
    public let device: DeviceID
    public let user: UserID
    public let secret: StoredSecret
    public let at: Timestamp

    /// - Parameter operation: the operation that issues the code.
    public init(
        _ drawn: OperationSecret, for device: DeviceID, of user: UserID, website: WebsiteID, at now: Timestamp,
        as operation: Operation, by sealer: Sealer, _ randomness: any Randomness
    ) throws(CryptoFailure) {
        self.device = device
        self.user = user
        let use = OperationSecret.Use(.unlockCode, user: user, website: website)
        secret = StoredSecret(
            operation: operation.id,
            sealed: SealedSecret(
                bytes: try sealer.seal(
                    drawn.reveal(), associated: use.associated(operation.id), randomness: randomness),
                key: sealer.currentID), expiresAt: now + UnlockCode.lifetime)
        at = now
    }
}

/// A phone sets a new PIN with the code that the help desk has read out.
///
/// Invariants:
///
/// - A code counts once: the change of the PIN and the end of the code are one write, which repeats
///   the code and its count of wrong ones as they were judged.
/// - Five wrong codes make a code void, however many relays compare at the same time, as with PINs.
///   The same wrong code again costs no further try.
///
/// Tests: `RelayTests/UnlockCodeTests.swift`.
extension Relay {
    /// Refuses a statement whose unlock code is not the one that was issued. Counts a wrong one.
    func judgeUnlock(
        _ statement: PINStatement, _ present: PhonePIN, by phone: PhoneCredential
    ) async throws(Refusal) {
        let now = time.now()
        guard let issued = present.unlock, issued.isOpen(at: now), let typed = statement.unlockCode else {
            throw .pin(.unlockVoid)
        }
        let sealed = try await withStore("pin") { () async throws(StoreFailure) in
            try await store.unlockSecret(of: issued.operation)
        }
        guard let sealed else { throw .pin(.unlockVoid) }
        let use = OperationSecret.Use(.unlockCode, user: phone.user, website: phone.website.id)
        let right = UnlockCode.text(try opened(sealed, for: use, of: issued.operation), counter: issued.counter)
        guard !Secret.matches(Array(typed.utf8), Array(right.utf8)) else { return }
        let wrong = WrongUnlockCode(phone: phone, issued: issued, at: now)
        let operation = operations.fixed(
            "wrong unlock", phone.id.bytes + issued.operation.bytes + Array(typed.utf8))
        let counted = try await withStore("pin") { () async throws(StoreFailure) in
            try await store.countWrong(wrong, as: operation)
        }
        guard let counted else { throw .unauthenticated }
        // Another code was issued meanwhile, and this one was not compared with it.
        guard let code = counted.pin.unlock, code.operation == issued.operation else { throw .pin(.unlockVoid) }
        if counted.isNew {
            metrics.changed(pin: .unlockWrong)
            log.warning(
                counted.isLocking ? "unlock.locked" : "unlock.wrong",
                [.website: phone.website.name, .user: phone.user.text, .device: phone.id.text])
        }
        throw .pin(code.isOpen(at: now) ? .unlockWrong(triesLeft: code.triesLeft) : .unlockVoid)
    }
}
