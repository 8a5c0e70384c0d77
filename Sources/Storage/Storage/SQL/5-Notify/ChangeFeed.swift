import Relay

extension Store: ChangeStore {
    public func newestChange() async throws(StoreFailure) -> Int64 {
        let rows = try await watch(Script("newest change", reads: [newestChangeID()]))
        return try rows[0].first?.optionalInteger("newest_id") ?? 0
    }
}

private let newestChangeID = Statement("SELECT max(id) AS newest_id FROM audit")

extension Store {
    public func changes(after number: Int64, limit: Int) async throws(StoreFailure) -> [StoreChange] {
        let read = changesAfter(number: .integer(number), limit: .integer(Int64(limit)))
        let rows = try await watch(Script("changes", reads: [read]))
        var changes: [StoreChange] = []
        for row in rows[0] {
            changes.append(
                StoreChange(
                    number: try row.integer("id"), event: try row.text("event"),
                    outcome: try row.optionalText("outcome"), user: try row.optionalID("user_id"),
                    challenge: try row.optionalID("challenge_id"), device: try row.optionalID("device_id")))
        }
        return changes
    }
}

private let changesAfter = Statement(
    """
    SELECT id, event, outcome, user_id, challenge_id, device_id FROM audit WHERE id > :number ORDER BY id LIMIT :limit
    """)

extension Store {
    public func countChanges(after first: Int64, upTo last: Int64) async throws(StoreFailure) -> Int {
        let read = countOfChanges(first: .integer(first), last: .integer(last))
        let rows = try await watch(Script("changes", reads: [read]))
        return Int(try rows[0].first?.integer("change_count") ?? 0)
    }
}

private let countOfChanges = Statement("SELECT count(*) AS change_count FROM audit WHERE id > :first AND id <= :last")
