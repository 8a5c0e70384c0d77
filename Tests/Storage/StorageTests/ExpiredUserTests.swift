import Bytes
import Crypto
import Domain
import TestSupport
import Testing
import World

@testable import Relay
@testable import Storage

/// Changes that the verbs began before the user's expiry, and that the store gets after it. What an expired user gets
/// would count as soon as the user is prolonged.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct ExpiredUserTests {
    private static let lock = Statement("UPDATE user SET codes_locked_at = :now WHERE id = :user")
    private static let approve = Statement(
        "UPDATE challenge SET approves = :digest, decision = 'approve', decided_at = :now WHERE user_id = :user")
    private static let activate = Statement(
        "UPDATE factor SET state = 'active' WHERE user_id = :user AND state = 'waiting'")

    /// The number of the user for each attempt, so that none changes what another one relies on.
    private enum Attempt: Int, CaseIterable {
        case app = 10
        case address, sendCode, confirm, resynchronise, reopenCodes, recover, openRecovery
    }

    /// Carries the change out. Returns whether it succeeded; an unexpected refusal is an issue.
    private static func succeeds(
        _ attempt: Attempt, on store: Store, as operation: Domain.Operation
    ) async throws -> Bool {
        let (number, now) = (attempt.rawValue, Sample.now)
        let user: UserID = Sample.id(number)
        func factor(_ kind: Factor, _ address: String? = nil) -> NewFactor {
            NewFactor(
                id: Sample.id(number + 50_000), user: user, kind: kind, state: .waiting,
                sealed: SealedSecret(bytes: [1], key: "1"), address: address, at: now)
        }
        switch attempt {
        case .app:
            let enrolment = FactorEnrolment(factor(.totp), mayReplace: true, isVouchedFor: true)
            let outcome = try await store.enrol(enrolment, website: Sample.website, as: operation)
            if outcome == .barred(.expired) { return false }
            return outcome == .done(secret: nil)
        case .address:
            let update = UserUpdate(
                user: user, website: Sample.website, change: UserChange(),
                addresses: [factor(.mail, "new@example.com")],
                isVouchedFor: true, at: now)
            let outcome = try await store.change(update, as: operation)
            if outcome == .barred(.expired) { return false }
            return outcome == .done
        case .sendCode:
            let code = CodeToSend(
                id: Sample.id(number + 50_000), factor: Sample.id(number + 20_000), counter: 0, challenge: nil,
                language: nil, at: now, expiresAt: Sample.later, holder: Sample.relay, leasedUntil: Sample.later)
            return try await store.send(AddressCode(user: user, code: code, charge: nil, since: now), as: operation)
                == .sent
        case .confirm, .resynchronise:
            let known = try #require(try await store.factors(of: user, at: now).first { $0.kind == .totp })
            guard attempt == .confirm else {
                return try await store.resynchronise(known, of: user, failures: 0, counter: 2, at: now, as: operation)
                    == .done
            }
            return try await store.confirm(
                known, of: user, failures: 0, counter: 1, isVouchedFor: true, at: now, as: operation) == .done
        case .reopenCodes:
            let approved = Approved(challenge: Sample.id(number), digest: Sample.key(number))
            return try await store.reopenCodes(
                CodeReopening(user: user, lockedAt: now, approved: approved, at: now), as: operation)
        case .recover, .openRecovery: return try await recovers(attempt, of: number, on: store, as: operation)
        }
    }

    private static func recovers(
        _ attempt: Attempt, of number: Int, on store: Store, as operation: Domain.Operation
    ) async throws -> Bool {
        let sealer = try Sealer(keys: [Sealer.Key(id: "1", key: Secret([UInt8](repeating: 1, count: 32)))])
        guard attempt == .recover else {
            let row = try #require(try await store.recovery(.handle(Sample.key(number)), of: Sample.website))
            let proving = try RecoveryProving(
                row, RecoveryLife(state: .proved, readyAt: Sample.now, expiresAt: Sample.later), by: .totp, nil,
                announcement: nil, OperationSecret(drawnFrom: SystemRandomness()),
                RecoveryMail.Delivery(
                    to: Sample.id(number), of: Sample.website, language: "de", sender: Sample.relay, at: Sample.now,
                    as: operation, by: sealer, SystemRandomness()))
            return try await store.prove(proving, as: operation)
        }
        let delivery = RecoveryMail.Delivery(
            to: Sample.id(number), of: Sample.website, language: "de", sender: Sample.relay, at: Sample.now,
            as: operation, by: sealer, SystemRandomness())
        let new = try NewRecovery(
            .mail, of: Sample.id(number), by: .website, OperationSecret(drawnFrom: SystemRandomness()), delivery)
        guard case .started = try await store.start(new, as: operation) else { return false }
        return true
    }

    @Test(arguments: Engine.allCases) func changeOfAnExpiredUserIsRefused(_ engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        let store = try database.open()
        defer { store.close() }
        try await Sample.fill(store, at: database.url)
        let operations = Operations(
            masterKey: Secret([UInt8](repeating: 1, count: 32)), randomness: SystemRandomness())
        for attempt in Attempt.allCases {
            let user: UserID = Sample.id(attempt.rawValue)
            let writes: [BoundStatement] =
                switch attempt {
                case .reopenCodes:
                    [
                        Self.lock(now: .timestamp(Sample.now), user: .id(user)),
                        Self.approve(
                            digest: .blob(Sample.key(attempt.rawValue)), now: .timestamp(Sample.now), user: .id(user)),
                    ]
                case .resynchronise: [Self.activate(user: .id(user))]
                default: []
                }
            _ = try await store.run(Script("test", writes: writes))
            for (expiresAt, isPossible) in [(Sample.now, false), (Sample.later, true)] {
                #expect(
                    try await store.run(Expiries.set(user, to: expiresAt, at: Sample.now, as: operations.new())))
                let succeeded = try await Self.succeeds(attempt, on: store, as: operations.new())
                #expect(succeeded == isPossible, "\(attempt)")
            }
        }
    }
}
