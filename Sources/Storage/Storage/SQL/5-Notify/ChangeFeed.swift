import Relay

extension Store: ChangeStore {
    public func newestChange() async throws(StoreFailure) -> Int64 {
        let rows = try await watch(Script("newest change", reads: [BoundStatement(newest)]))
        return try rows[0].first?.optionalInteger(0) ?? 0
    }

    public func changes(after number: Int64, limit: Int) async throws(StoreFailure) -> [StoreChange] {
        let step = BoundStatement(beyond, .integer(number), .integer(Int64(limit)))
        let rows = try await watch(Script("changes", reads: [step]))
        var changes: [StoreChange] = []
        for row in rows[0] {
            changes.append(
                StoreChange(
                    number: try row.integer(0), event: try row.text(1), outcome: try row.optionalText(2),
                    user: try row.optionalID(3), challenge: try row.optionalID(4), device: try row.optionalID(5)))
        }
        return changes
    }

    public func countChanges(after first: Int64, upTo last: Int64) async throws(StoreFailure) -> Int {
        let rows = try await watch(Script("changes", reads: [BoundStatement(count, .integer(first), .integer(last))]))
        return Int(try rows[0].first?.integer(0) ?? 0)
    }
}

private let newest = Statement("SELECT max(id) FROM audit")
private let beyond = Statement(
    "SELECT id, event, outcome, user_id, challenge_id, device_id FROM audit WHERE id > ? ORDER BY id LIMIT ?")
private let count = Statement("SELECT count(*) FROM audit WHERE id > ? AND id <= ?")
