import Crypto
import Domain
import Relay

extension Store: KeyRotationStore {
    public func factors(sealedBy key: String, skipping: Int) async throws(StoreFailure) -> [SealedFactor] {
        let read = BoundStatement(sealedFactors, .text(key), .integer(Int64(skipping)))
        return try await run(
            Query(script: Script("reseal", reads: [read])) { rows throws(StoreFailure) in
                var factors: [SealedFactor] = []
                for row in rows[0] {
                    factors.append(
                        SealedFactor(
                            id: try row.id(0), kind: try row.word(1), user: try row.id(2), website: try row.id(3),
                            secret: try row.blob(4)))
                }
                return factors
            })
    }

    public func webhooks(sealedBy key: String, skipping: Int) async throws(StoreFailure) -> [SealedSecrets] {
        let read = BoundStatement(sealedEndpoints, .text(key), .integer(Int64(skipping)))
        return try await run(
            Query(script: Script("reseal", reads: [read])) { rows throws(StoreFailure) in
                var secrets: [SealedSecrets] = []
                for row in rows[0] { secrets.append(SealedSecrets(website: try row.id(0), secrets: try row.blob(1))) }
                return secrets
            })
    }

    /// Writes secrets sealed with the new key. A repetition changes nothing.
    public func reseal(_ secrets: [ReencryptedSecrets]) async throws(StoreFailure) {
        let writes = secrets.map {
            BoundStatement(resealEndpoint, .blob($0.new), .text($0.key), .id($0.website), .blob($0.old))
        }
        try await run(Query(script: Script("reseal", writes: writes)) { _ in () })
    }

    /// Writes secrets sealed with the new key. A repetition changes nothing. A row that is not
    /// genuine gets the new sealing like the others, but is not signed. It must not keep the others
    /// under the old key.
    public func reseal(_ factors: [ResealedFactor]) async throws(StoreFailure) {
        let writes = factors.map { BoundStatement(sealAnew, .blob($0.new), .text($0.key), .id($0.id), .blob($0.old)) }
        let rows = factors.map { SignedRows.factor($0.id).lenient }
        try await run(Query(script: Script("reseal", rows: rows, writes: writes)) { _ in () })
    }
}

/// Counts of what is sealed with each key of the installation.
public enum KeyUse {
    /// The number of factors by the id of the key.
    public static let factors = counted(factorsByKey)
    public static let webhooks = counted(endpointsByKey)
    /// The number of operation secrets by key. They are not sealed again, but deleted within a day.
    public static let operations = counted(secretsByKey)

    private static func counted(_ statement: Statement) -> Query<[String: Int64]> {
        Query(script: Script("rekey", reads: [BoundStatement(statement)])) {
            rows throws(StoreFailure) -> [String: Int64] in
            var counts: [String: Int64] = [:]
            for row in rows[0] { counts[try row.text(0)] = try row.integer(1) }
            return counts
        }
    }

    /// Counts the answers that are stored for repeated requests and sealed with this key. Their
    /// first bytes identify the key. They are stored for a day.
    public static func answers(sealedBy key: String) -> Query<Int64> {
        let beginning = Sealer.beginning(underKey: key)
        let read = BoundStatement(answersByKey, .integer(Int64(beginning.count)), .blob(beginning))
        return Query(script: Script("rekey", reads: [read])) { rows throws(StoreFailure) in
            try rows[0].first?.integer(0) ?? 0
        }
    }
}

private let sealedFactors = Statement(
    """
    SELECT f.id, f.kind, f.user_id, u.website_id, f.secret FROM factor f JOIN user u ON u.id = f.user_id
    WHERE f.sealed_by = ? AND f.secret IS NOT NULL LIMIT 100 OFFSET ?
    """)

private let sealAnew = Statement("UPDATE factor SET secret = ?, sealed_by = ? WHERE id = ? AND secret = ?")

/// Reads the sealed secrets of webhook endpoints, with one row for each website.
private let sealedEndpoints = Statement(
    "SELECT website_id, secrets FROM webhook_endpoint WHERE sealed_by = ? ORDER BY website_id LIMIT 100 OFFSET ?")
private let resealEndpoint = Statement(
    "UPDATE webhook_endpoint SET secrets = ?, sealed_by = ? WHERE website_id = ? AND secrets = ?")
private let endpointsByKey = Statement("SELECT sealed_by, count(*) FROM webhook_endpoint GROUP BY sealed_by")

private let factorsByKey = Statement(
    "SELECT sealed_by, count(*) FROM factor WHERE sealed_by IS NOT NULL GROUP BY sealed_by")

private let secretsByKey = Statement("SELECT sealed_by, count(*) FROM operation_secret GROUP BY sealed_by")

private let answersByKey = Statement("SELECT count(*) FROM idempotency WHERE substr(answer, 1, ?) = ?")
