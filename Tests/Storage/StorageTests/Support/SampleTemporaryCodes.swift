import Bytes
import Crypto
import Domain
import World

@testable import Relay
@testable import Storage

extension Sample {
    /// Gives temporary codes out, uses, replaces and revokes them.
    static func runTemporaryCodes(on store: Store, _ operation: () -> Domain.Operation) async throws {
        let sealer = try Sealer(keys: [Sealer.Key(id: "1", key: Secret([UInt8](repeating: 1, count: 32)))])
        for number in 390...393 {
            let giving = operation()
            guard
                let new = NewTemporaryCode(
                    "7K3MP-X2Q9R", for: id(number), uses: 1, mayEnrol: true, life: .seconds(3600), at: now, as: giving,
                    by: sealer)
            else { continue }
            _ = try await store.run(TemporaryCodes.issue(new, replacing: nil, as: giving))
            guard number == 391 else { continue }
            let open = OpenTemporaryCode(factor: new.id, digest: new.digest, usesLeft: 1, mayEnrol: true)
            let life = ChallengeLife(state: .answered, decision: .approve, reason: nil, expiresAt: later)
            let code = UsedCode(
                user: id(number), factor: new.id, failures: 0, kind: .temporary(open, enrolling: key(number)))
            _ = try await store.close(
                ChallengeEnd(
                    challenge: id(number), life: life, factor: .operator, proof: .code, code: code,
                    event: "challenge.answered", at: now), as: operation())
        }
        _ = try await store.run(TemporaryCodes.shown(of: id(390)))
        _ = try await store.run(TemporaryCodes.revoke(id(392), at: now, as: operation()))
        _ = try await store.run(TemporaryCodes.voidAll(at: now))
    }
}
