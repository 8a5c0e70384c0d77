import Domain
import Relay
import World

extension Store: DeviceStore {
    public func device(
        _ id: DeviceID, ofUser username: String, of website: WebsiteID, at now: Timestamp
    ) async throws(StoreFailure) -> OwnedDevice? {
        let found = try await run(
            Phones.find(
                deviceOfUser(
                    device: .id(id), website: .id(website), username: .text(username), stale: Phones.stale(at: now))))
        guard var found else { return nil }
        try await setReport(of: &found.view)
        return found
    }

    /// Adds the last report to a phone that was read without it. A report that is not genuine is
    /// left out, and marked.
    func setReport(of view: inout DeviceView) async throws(StoreFailure) {
        do throws(StoreFailure) {
            view.report = try await report(of: view.id)
        } catch {
            guard case .forged = error else { throw error }
            view.isReportForged = true
        }
    }
}

private let deviceOfUser = Statement(
    """
    \(found) AND d.user_id = (SELECT u.id FROM user u WHERE u.website_id = :website AND u.username = :username)
    AND \(Phones.isThere)
    """)

private let found =
    "SELECT \(Phones.columnsWithoutReport), d.user_id, d.stopped_by FROM device d WHERE d.id = :device"

extension Store {
    public func device(revocation digest: [UInt8]) async throws(StoreFailure) -> (id: DeviceID, user: UserID)? {
        try await run(
            Query(script: Script("device", reads: [deviceByRevocation(revocation: .blob(digest))])) {
                rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return (try row.id("id"), try row.id("user_id"))
            })
    }

    public func change(_ change: DeviceChange, as operation: Operation) async throws(StoreFailure) -> [ChallengeID]? {
        try await run(Phones.change(change, as: operation))
    }
}

private let deviceByRevocation = Statement("SELECT id, user_id FROM device WHERE revocation = :revocation")

/// The queries about phones, for the verbs and the operator's tool.
public enum Phones {
    /// Finds a phone of any website by its id, for the operator.
    public static func any(_ id: DeviceID) -> Query<OwnedDevice?> { find(deviceByID(device: .id(id))) }

    private static let deviceByID = Statement(found)

    /// Reads a phone without a check of its row, because any phone can be stopped, even if its row
    /// is not genuine. A change that gives rights to a phone checks the row itself. The report is
    /// left out.
    fileprivate static func find(_ step: BoundStatement) -> Query<OwnedDevice?> {
        Query(script: Script("device", reads: [step])) { rows throws(StoreFailure) in
            guard let row = rows[0].first else { return nil }
            return OwnedDevice(
                user: try row.id("user_id"), view: try read(row), stoppedBy: try row.optionalWord("stopped_by"))
        }
    }
}

/// The phones that a website sees: their columns, and how they are read.
extension Phones {
    /// The table of phones `d`, with the last report `r` of each.
    static let table = "device d LEFT JOIN device_report r ON r.device_id = d.id"

    static let ofUser = "WHERE d.user_id = :user AND \(isThere) ORDER BY d.created_at, d.id"

    /// The columns of the aliases `d` and `r`.
    static let columns = "\(ownColumns), \(DeviceReports.columns)"

    /// The columns of `d` alone. Each report is then read with a check of its own row.
    static let columnsWithoutReport = "\(ownColumns), \(DeviceReports.none)"

    private static let ownColumns = """
        d.id AS device_id, d.name AS device_name, d.platform AS device_platform, d.state AS device_state,
        d.public_key AS device_public_key, d.agreement_key AS device_agreement_key,
        d.binding AS device_binding, d.created_at AS device_created_at,
        d.last_seen_at AS device_last_seen_at, d.push_token AS device_push_token,
        d.stopped_by AS device_stopped_by, d.login_successes AS device_login_successes,
        d.login_failures AS device_login_failures, d.failures AS device_failures, d.verify_since AS device_verify_since,
        (SELECT v.expires_at FROM user v WHERE v.id = d.user_id) AS device_expires_at, \(PINRows.columns)
        """

    /// Reads a phone. A push token that does not open is shown as it is, because nothing is sent to
    /// it here, and it must not keep anybody from stopping the phone.
    static func read(_ row: Row) throws(StoreFailure) -> DeviceView {
        DeviceView(
            id: try row.id("device_id"), name: try row.optionalText("device_name"),
            platform: try row.word("device_platform"), state: try row.word("device_state"),
            pushToken: try row.shownPushToken("device_push_token"),
            publicKey: try row.optionalBlob("device_public_key"),
            agreementKey: try row.optionalBlob("device_agreement_key"), binding: try row.optionalText("device_binding"),
            createdAt: try row.timestamp("device_created_at"),
            lastSeenAt: try row.optionalTimestamp("device_last_seen_at"), report: try DeviceReports.read(row),
            stoppedBy: try row.optionalWord("device_stopped_by"),
            counts: DeviceCounts(
                successes: try row.integer("device_login_successes"),
                failures: try row.integer("device_login_failures"),
                wrongNumbers: try row.integer("device_failures")),
            expiresAt: try row.optionalTimestamp("device_expires_at"), pin: try PINRows.read(row),
            verifySince: try row.optionalTimestamp("device_verify_since"))
    }

    /// The condition for phones `d` that exist for the website: all except those whose approval
    /// failed. The next binding of the user deletes the latter. `stale` returns the value of
    /// `:stale`.
    static let isThere = """
        NOT (d.state = 'waiting' AND EXISTS (SELECT 1 FROM challenge c WHERE c.id = d.approval
        AND c.decided_at IS NOT NULL AND coalesce(c.decision, '') <> 'approve'
        AND (coalesce(c.reason, '') NOT IN \(ofNobody) OR d.push_token_at <= :stale)))
        """

    /// The reasons with which an approval ends without a refusal. The user is asked again while the
    /// phone's activation code is valid.
    static let ofNobody = "('superseded', 'expired')"

    /// The time before which a waiting phone's activation code has expired.
    static func stale(at now: Timestamp) -> SQLValue { .timestamp(now - NewActivation.lifetime) }
}
