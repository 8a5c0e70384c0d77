import Crypto
import Domain
import Relay

extension Store: KeyRotationStore {
    public func factors(sealedBy key: String, skipping: Int) async throws(StoreFailure) -> [SealedFactor] {
        let read = sealedFactors(key: .text(key), skipped: .integer(Int64(skipping)))
        return try await run(
            Query(script: Script("reseal", reads: [read])) { rows throws(StoreFailure) in
                var factors: [SealedFactor] = []
                for row in rows[0] {
                    factors.append(
                        SealedFactor(
                            id: try row.id("id"), kind: try row.word("kind"), user: try row.id("user_id"),
                            website: try row.id("website_id"), secret: try row.blob("secret")))
                }
                return factors
            })
    }
}

private let sealedFactors = Statement(
    """
    SELECT f.id, f.kind, f.user_id, u.website_id, f.secret FROM factor f JOIN user u ON u.id = f.user_id
    WHERE f.sealed_by = :key AND f.secret IS NOT NULL LIMIT 100 OFFSET :skipped
    """)

extension Store {
    public func webhooks(sealedBy key: String, skipping: Int) async throws(StoreFailure) -> [SealedSecrets] {
        let read = sealedEndpoints(key: .text(key), skipped: .integer(Int64(skipping)))
        return try await run(
            Query(script: Script("reseal", reads: [read])) { rows throws(StoreFailure) in
                var secrets: [SealedSecrets] = []
                for row in rows[0] {
                    secrets.append(SealedSecrets(website: try row.id("website_id"), secrets: try row.blob("secrets")))
                }
                return secrets
            })
    }
}

/// Reads the sealed secrets of webhook endpoints, with one row for each website.
private let sealedEndpoints = Statement(
    """
    SELECT website_id, secrets FROM webhook_endpoint WHERE sealed_by = :key
    ORDER BY website_id LIMIT 100 OFFSET :skipped
    """)

extension Store {
    /// Writes secrets sealed with the new key. A repetition changes nothing.
    public func reseal(_ secrets: [ReencryptedSecrets]) async throws(StoreFailure) {
        let writes = secrets.map {
            resealEndpoint(new: .blob($0.new), key: .text($0.key), website: .id($0.website), old: .blob($0.old))
        }
        try await run(Query(script: Script("reseal", writes: writes)) { _ in () })
    }
}

private let resealEndpoint = Statement(
    "UPDATE webhook_endpoint SET secrets = :new, sealed_by = :key WHERE website_id = :website AND secrets = :old")

extension Store {
    /// Writes secrets sealed with the new key. A repetition changes nothing. A row that is not
    /// genuine gets the new sealing like the others, but is not signed. It must not keep the others
    /// under the old key.
    public func reseal(_ factors: [ResealedFactor]) async throws(StoreFailure) {
        let writes = factors.map {
            resealFactor(new: .blob($0.new), key: .text($0.key), factor: .id($0.id), old: .blob($0.old))
        }
        let rows = factors.map { SignedRows.factor($0.id).lenient }
        try await run(Query(script: Script("reseal", rows: rows, writes: writes)) { _ in () })
    }
}

private let resealFactor = Statement(
    "UPDATE factor SET secret = :new, sealed_by = :key WHERE id = :factor AND secret = :old")

/// Counts of what is sealed with each key of the installation.
public enum KeyUse {
    /// The number of factors by the id of the key.
    public static let factors = counted(factorsByKey)

    private static let factorsByKey = Statement(
        "SELECT sealed_by, count(*) AS sealed_count FROM factor WHERE sealed_by IS NOT NULL GROUP BY sealed_by")

    public static let webhooks = counted(endpointsByKey)

    private static let endpointsByKey = Statement(
        "SELECT sealed_by, count(*) AS sealed_count FROM webhook_endpoint GROUP BY sealed_by")

    /// The number of operation secrets by key. They are not sealed again, but deleted within a day.
    public static let operations = counted(secretsByKey)

    private static let secretsByKey = Statement(
        "SELECT sealed_by, count(*) AS sealed_count FROM operation_secret GROUP BY sealed_by")

    static func counted(_ statement: Statement) -> Query<[String: Int64]> {
        Query(script: Script("rekey", reads: [statement()])) { rows throws(StoreFailure) -> [String: Int64] in
            var counts: [String: Int64] = [:]
            for row in rows[0] { counts[try row.text("sealed_by")] = try row.integer("sealed_count") }
            return counts
        }
    }

    /// Counts the answers that are stored for repeated requests and sealed with this key. Their
    /// first bytes identify the key. They are stored for a day.
    public static func answers(sealedBy key: String) -> Query<Int64> {
        let beginning = Sealer.beginning(underKey: key)
        let read = answersByKey(length: .integer(Int64(beginning.count)), beginning: .blob(beginning))
        return Query(script: Script("rekey", reads: [read])) { rows throws(StoreFailure) in
            try rows[0].first?.integer("answer_count") ?? 0
        }
    }

    private static let answersByKey = Statement(
        "SELECT count(*) AS answer_count FROM idempotency WHERE substr(answer, 1, :length) = :beginning")
}
