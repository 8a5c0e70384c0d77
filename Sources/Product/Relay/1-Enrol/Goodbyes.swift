import Bytes
import Crypto
import Domain
import JSON
import Log
import World

/// The store port for phones that leave (verb Enrol).
public protocol GoodbyeStore: Sendable {
    /// Returns a phone in any state; nil if there is none with a key of its own.
    func partingPhone(_ id: DeviceID) async throws(StoreFailure) -> PartingPhone?
}

/// A phone that may have been unbound.
public struct PartingPhone: Sendable, Equatable {
    public let state: DeviceState
    /// The author of its end; nil if it has not ended, or ended by SQL.
    public let stoppedBy: ChangeAuthor?
    public let publicKey: [UInt8]
    /// SHA-256 of its SubjectPublicKeyInfo.
    public let key: [UInt8]
    public let website: String

    public init(state: DeviceState, stoppedBy: ChangeAuthor?, publicKey: [UInt8], key: [UInt8], website: String) {
        self.state = state
        self.stoppedBy = stoppedBy
        self.publicKey = publicKey
        self.key = key
        self.website = website
    }
}

/// The relay's answer to a goodbye.
public enum Farewell: Sendable, Equatable {
    /// The phone is unbound; the signed statement of this, a `twoefay-farewell+jwt`.
    case signed(String)
    /// The phone is still bound, and has not asked to leave.
    case bound
}

/// The end of an enrolment, known on both sides: the phone signs that it leaves, and the relay signs
/// that the phone is unbound. So a phone deletes its keys only when that is certain, and a phone
/// that its website or an operator has unbound learns it, too.
///
/// Invariants:
///
/// - Only the phone itself gets the statement: it must sign a fresh request with its key. All others
///   get the same refusal, whether the phone exists, was suspended or was never there.
/// - The statement names the phone, its key, the website and the nonce of the request, so that one
///   made for another phone or at another time is worth nothing.
///
/// Tests: `APITests/GoodbyeTests.swift`.
extension Relay {
    /// Unbinds the phone that has signed this statement if it leaves.
    ///
    /// - Parameter sender: the source address of the request.
    public func goodbye(
        _ compact: String, from sender: String
    ) async throws(Refusal) -> (device: DeviceID, farewell: Farewell) {
        guard goodbyeBudget.take(sender, at: time.instant()) else {
            metrics.reached(.goodbye)
            throw .limited(retryAfter: .seconds(1))
        }
        guard let statement = GoodbyeStatement(compact) else { throw Self.malformedGoodbye }
        var phone = try await parting(statement.device)
        guard let key = try? P256PublicKey(x963: phone.publicKey) else { throw .unauthenticated }
        let audience = SignedDecision.audience(origin: settings.origin, website: phone.website)
        let content: GoodbyeStatement.Content
        do throws(GoodbyeStatement.Fault) {
            content = try statement.content(key: key, audience: audience, at: time.now())
        } catch {
            // A wrong clock is told only to the phone itself, whose signature was right.
            throw error == .clock ? Self.untimelyGoodbye : .unauthenticated
        }
        if phone.state == .active, content.leaves {
            try await unbind(by: try await device(statement.device, key: phone.key, isCertified: false))
            phone = try await parting(statement.device)
        }
        switch phone.state {
        case .active: return (statement.device, .bound)
        case .suspended, .waiting: throw .unauthenticated
        case .revoked:
            let signed = try sign(
                "twoefay-farewell+jwt",
                [
                    "v": 1, "aud": .string(audience), "device": .string(statement.device.text),
                    "thumbprint": .string(key.thumbprint), "by": .word(phone.stoppedBy ?? .operator),
                    "nonce": .string(content.nonce), "time": .string(time.now().rfc3339),
                ])
            return (statement.device, .signed(signed))
        }
    }

    private func parting(_ id: DeviceID) async throws(Refusal) -> PartingPhone {
        let phone = try await withStore("goodbye") { () async throws(StoreFailure) in
            try await store.partingPhone(id)
        }
        guard let phone else { throw .unauthenticated }
        return phone
    }

    private static let malformedGoodbye = Refusal.invalid([
        FieldFault(
            "goodbye", .format,
            LocalizedText("must be a twoefay-goodbye+jwt", de: "muss ein twoefay-goodbye+jwt sein"))
    ])

    private static let untimelyGoodbye = Refusal.invalid([
        FieldFault(
            "goodbye", .mismatch,
            LocalizedText(
                "has an iat that differs from the relay's clock by more than five minutes: see GET /time",
                de: "hat ein iat, das um mehr als fünf Minuten von der Uhr des Relays abweicht: siehe GET /time"))
    ])
}
