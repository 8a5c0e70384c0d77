import Crypto
import Domain
import Log
import World

/// The store port for secrets that only a phone gets (verb Enrol).
public protocol PhoneCodeStore: Sendable {
    /// Records that a phone gets the secret of its codes, and creates the factor if the phone has
    /// none.
    func deliver(_ delivery: SecretDelivery, as operation: Operation)
        async throws(StoreFailure) -> SecretDeliveryOutcome
}

/// The delivery of a secret to a phone.
public struct SecretDelivery: Sendable {
    public let phone: PhoneCredential
    /// The key to which the secret is sealed, as the phone has signed it.
    public let agreement: [UInt8]
    /// The time in the phone's request.
    public let askedAt: Timestamp
    /// The factor that is stored if the phone has none.
    public let factor: NewFactor
    /// The PIN that must still be as it was judged; nil if the phone needs none.
    public let pin: JudgedPIN?
    /// The time since when a factor must exist for the phone to get its secret again; nil: the
    /// phone gets it at any time.
    public let repeatableSince: Timestamp?
    public let at: Timestamp

    public init(
        phone: PhoneCredential, agreement: [UInt8], askedAt: Timestamp, factor: NewFactor, pin: JudgedPIN? = nil,
        repeatableSince: Timestamp?, at: Timestamp
    ) {
        self.pin = pin
        self.phone = phone
        self.agreement = agreement
        self.askedAt = askedAt
        self.factor = factor
        self.repeatableSince = repeatableSince
        self.at = at
    }
}

/// The outcome of a delivery.
public enum SecretDeliveryOutcome: Sendable, Equatable {
    /// The delivery is recorded; this is the factor of the phone.
    case done(CodeFactor)
    /// The phone is no longer active.
    case gone
    /// The user is locked, frozen, disabled or expired.
    case barred(UserState)
    /// The phone was enrolled with another agreement key, or with none.
    case otherKey
    /// The request is not later than the one before.
    case replayed
    /// The user's codes come from an app, or from another phone.
    case taken
    /// The phone has got its secret, and gets it once.
    case delivered
    /// The PIN or its count has changed since it was judged.
    case otherPIN
}

/// A phone shows codes itself, beside its answers to pushes: it gets the secret of a TOTP factor,
/// sealed to its agreement key.
///
/// Invariants: only the active phone for which the secret was made gets it, against a request that
/// its key has just signed. No other phone, website or operator ever sees it. The factor ends with
/// the phone: when the phone is suspended or unbound, its codes are void, and it later gets another
/// secret.
///
/// Tests: `APITests/PhoneCodeTests.swift`.
extension Relay {
    /// Returns the secret of the phone's codes as a JWE for the phone's agreement key.
    ///
    /// - Parameters:
    ///   - request: a `twoefay-secret+jwt`.
    ///   - pinSignature: the signature of the PIN's key over the same bytes, if approvals need one.
    public func phoneCodes(
        _ request: String, pinSignature: String? = nil, by phone: PhoneCredential, as operation: Operation
    ) async throws(Refusal) -> (factor: FactorID, sealed: String) {
        if let wait = secretBudget.wait(phone.id, at: time.instant()) {
            metrics.reached(.report)
            throw .limited(retryAfter: wait)
        }
        let website = try website(phone.website)
        guard website.policy.phoneCodes != .off else { throw Self.noPhoneCodes }
        guard let key = try? P256PublicKey(x963: phone.publicKey) else {
            log.error("device.key", [.device: phone.id.text])
            throw .broken
        }
        let audience = SignedDecision.audience(origin: settings.origin, website: website.name)
        let now = time.now()
        let signed: SecretRequest
        do throws(SecretRequest.Fault) {
            signed = try SecretRequest(request, of: phone.id, key: key, audience: audience, at: now)
        } catch {
            throw .invalid([FieldFault("request", error.code, error.message)])
        }
        let factor = try await delivered(signed, request, pinSignature, to: phone, website, at: now, as: operation)
        guard let secret = try secret(of: factor, user: phone.user, website: website.id) else { throw .broken }
        do throws(CryptoFailure) {
            let sealed = try SealedTOTP.seal(
                secret, algorithm: factor.algorithm, digits: factor.digits,
                period: factor.period ?? CodeShape().period, of: factor.id, for: phone.id, signed.agreement,
                audience: audience, randomness: randomness)
            return (factor.id, sealed)
        } catch {
            log.error("factor.seal", [.error: error.description])
            throw .broken
        }
    }

    /// Delivers the secret. If others change the phone's PIN or its count meanwhile, it is judged
    /// again.
    private func delivered(
        _ request: SecretRequest, _ statement: String, _ signature: String?, to phone: PhoneCredential,
        _ website: Website, at now: Timestamp, as operation: Operation
    ) async throws(Refusal) -> CodeFactor {
        for _ in 0..<Self.pinAttempts {
            let pin = try await judgePIN(over: statement, signature: signature, website, of: phone)
            if let factor = try await deliver(request, to: phone, website, pin, at: now, as: operation) {
                return factor
            }
        }
        throw .limited(retryAfter: .zero)
    }

    private func deliver(
        _ request: SecretRequest, to phone: PhoneCredential, _ website: Website, _ pin: JudgedPIN?,
        at now: Timestamp, as operation: Operation
    ) async throws(Refusal) -> CodeFactor? {
        let (id, shape): (FactorID, CodeShape) = (operation.identifier("totp"), CodeShape())
        let sealed = try seal(
            drawSecret().factorSecret(.totp), row: id, kind: .totp, user: phone.user, website: website.id)
        let new = NewFactor(
            id: id, user: phone.user, kind: .totp, state: .active, sealed: sealed, algorithm: shape.algorithm,
            digits: shape.digits, period: shape.period, at: now)
        // A phone that did not get the answer may ask again for as long as it may repeat /verify.
        let delivery = SecretDelivery(
            phone: phone, agreement: request.agreement.x963, askedAt: request.askedAt, factor: new,
            pin: pin, repeatableSince: website.policy.phoneCodes == .again ? nil : now - NewActivation.lifetime, at: now
        )
        let outcome = try await withStore("deliverSecret") { () async throws(StoreFailure) in
            try await store.deliver(delivery, as: operation)
        }
        if outcome == .otherPIN { return nil }
        guard case .done(let factor) = outcome else { throw outcome.refusal }
        log.info(
            "secret.delivered",
            [
                .website: website.name, .user: phone.user.text, .device: phone.id.text,
                .outcome: factor.id == id ? "new" : "again",
            ])
        scheduleWebhooks()
        return factor
    }

    static func codesMeetNo(_ demand: String) -> Refusal {
        .forbidden(
            LocalizedText(
                "The policy of this user demands more of a phone than a code shows (\(demand)), so the phone gets no codes",
                de: "Die Richtlinie für diese Person verlangt vom Telefon mehr, als ein Code zeigt (\(demand)); darum "
                    + "erhält das Telefon keine Codes"))
    }

    private static let noPhoneCodes = Refusal.forbidden(
        LocalizedText(
            "The website's policy gives phones no codes: phone-codes is off",
            de: "Die Richtlinie der Website gibt Telefonen keine Codes: phone-codes ist off"))
}

extension SecretDeliveryOutcome {
    fileprivate var refusal: Refusal {
        switch self {
        case .done, .otherPIN: .broken
        case .gone: .unauthenticated
        case .barred(let state): Relay.barred(state)
        case .otherKey: .conflict([FieldFault("agreement", .mismatch, Self.otherKeyText)])
        case .replayed: .conflict([FieldFault("request", .mismatch, Self.replayedText)])
        case .taken: .conflict([FieldFault("totp", .taken, Self.takenText)])
        case .delivered: .conflict([FieldFault("request", .state, Self.deliveredText)])
        }
    }

    private static let otherKeyText = LocalizedText(
        "is not the key with which the phone was bound: bind the phone again, with a new activation",
        de: "ist nicht der Schlüssel, mit dem das Telefon gebunden wurde: Binden Sie es mit einer neuen Aktivierung")

    private static let replayedText = LocalizedText(
        "is not later than the last request of this phone: sign a new one",
        de: "ist nicht später als die letzte Anfrage dieses Telefons: Signieren Sie eine neue")

    private static let takenText = LocalizedText(
        "exists already, in an app or on another phone: remove it first, through the website",
        de: "existiert schon, in einer App oder auf einem anderen Telefon: Entfernen Sie es zuerst über die Website")

    private static let deliveredText = LocalizedText(
        "comes too late: under phone-codes: once, a phone gets its secret once",
        de: "kommt zu spät: Bei phone-codes: once erhält ein Telefon sein Geheimnis nur einmal")
}

extension SecretRequest.Fault {
    fileprivate var code: FieldFault.Code {
        switch self {
        case .statement: .format
        case .clock: .mismatch
        }
    }

    fileprivate var message: LocalizedText {
        switch self {
        case .statement:
            LocalizedText(
                "must be a twoefay-secret+jwt that this phone has signed",
                de: "muss ein twoefay-secret+jwt sein, das dieses Telefon signiert hat")
        case .clock:
            LocalizedText(
                "has an iat that differs from the relay's clock by more than five minutes: see GET /time",
                de: "hat ein iat, das um mehr als fünf Minuten von der Uhr des Relays abweicht: siehe GET /time")
        }
    }
}
