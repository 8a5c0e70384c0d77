import Domain
import Relay
import World

extension Store: VerifyCodeStore {
    public func username(of device: DeviceID, website: WebsiteID) async throws(StoreFailure) -> String? {
        let script = Script(
            "verify", rows: [.device(device)], reads: [userOfDevice(device: .id(device), website: .id(website))])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in try rows[0].first?.text("username") })
    }

    public func use(_ code: VerifiedCode, as operation: Operation) async throws(StoreFailure) -> Bool {
        let change = Change(
            "verify", operation, rows: [.user(code.user).signed, .factor(code.factor).signed],
            [
                Locks.hold(user: .id(code.user)),
                moveCounter(
                    next: .integer(code.next), operation: .id(operation), factor: .id(code.factor),
                    counter: .integer(code.counter), user: .id(code.user), now: .timestamp(code.at),
                    failures: .integer(Int64(code.failures))),
                Factors.audit(code.factor, "code.verified", at: code.at, as: operation),
            ] + CodeFailures.right(code.factor, of: code.user, at: code.at, as: operation))
        return try await run(Query(change: change) { rows in rows.happened })
    }

    public func factor(verifiedBy operation: OperationID) async throws(StoreFailure) -> Factor? {
        try await run(
            Query(script: Script("verified", reads: [verifiedBy(operation: .id(operation))])) {
                rows throws(StoreFailure) in
                try rows[0].first?.word("outcome")
            })
    }
}

private let userOfDevice = Statement(
    """
    SELECT u.username FROM device d JOIN user u ON u.id = d.user_id
    WHERE d.id = :device AND d.state = 'active' AND u.website_id = :website
    """)

/// Uses the code up, if the factor and the user's wrong codes are as they were read.
private let moveCounter = Statement(
    """
    UPDATE factor SET counter = :next, operation = :operation
    WHERE id = :factor AND state = 'active' AND resync_since IS NULL AND kind IN ('totp', 'hotp') AND counter = :counter
    AND EXISTS (SELECT 1 FROM user u WHERE u.id = :user AND u.id = factor.user_id AND \(Guards.mayLogIn)
    AND u.codes_locked_at IS NULL AND u.code_failures = :failures)
    """)

private let verifiedBy = Statement(
    "SELECT outcome FROM audit WHERE operation = :operation AND event = 'code.verified'")
