import Domain
import Relay
import World

@testable import Storage

extension Sample {
    /// Expired rows of each kind.
    static var oldRows: [BoundStatement] {
        let old = SQLValue.timestamp(now - .seconds(1))
        let (id, other) = (SQLValue.id(Sample.id(77_000) as ChallengeID), SQLValue.id(Sample.id(77_001) as ChallengeID))
        let digest = SQLValue.blob([UInt8](repeating: 7, count: 32))
        return [
            BoundStatement(oldTally, .text(String(repeating: "0", count: 32))), BoundStatement(oldDead, id, old),
            BoundStatement(oldEndpoint, other, old), BoundStatement(oldActivation, digest, id, old, old, id),
            BoundStatement(oldCode, id, old, old),
            BoundStatement(oldSecret, id, old),
            BoundStatement(oldChallenge, id, id, id, .blob([]), id, old, old, old, id),
            BoundStatement(oldChange, id, old),
            BoundStatement(oldChange, other, .timestamp(now)),
        ]
    }

    static func runRetention(on store: Store) async throws {
        for kind in ExpiredRows.Kind.allCases {
            let rubbish = ExpiredRows(kind, before: now, mark: kind == .audit ? Int64(count) - 10 : 0)
            _ = try await store.drop(rubbish, by: Sample.id(1))
        }
    }
}

private let oldTally = Statement("INSERT INTO sms_usage VALUES ('2020-01-01', ?, 1, 0, 0, 0)")
private let oldDead = Statement("INSERT INTO outbox (id, kind, attempts, dead_at) VALUES (?, 'mail', 0, ?)")
private let oldEndpoint = Statement("INSERT INTO outbox (id, kind, attempts, expires_at) VALUES (?, 'webhook', 0, ?)")
private let oldActivation = Statement("INSERT INTO activation VALUES (?, ?, ?, ?, NULL, NULL, ?, NULL)")
private let oldCode = Statement("INSERT INTO sent_code VALUES (?, 0, NULL, ?, ?, NULL)")
private let oldSecret = Statement("INSERT INTO operation_secret VALUES (?, x'00', '1', ?)")
private let oldChallenge = Statement(
    """
    INSERT INTO challenge (id, website_id, user_id, state, policy, context, nonce, asked_at, expires_at, decided_at,
    operation) VALUES (?, ?, ?, 'expired', '{}', ?, ?, ?, ?, ?, ?)
    """)
private let oldChange = Statement("INSERT INTO audit (operation, at, event) VALUES (?, ?, 'user.registered')")
