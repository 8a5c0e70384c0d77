import Domain
import Relay

extension Store: ReportStore {
    public func store(_ report: DeviceReport, of phone: PhoneCredential) async throws(StoreFailure) -> DeviceReport? {
        let (device, key) = (SQLValue.id(phone.id), SQLValue.blob(phone.key))
        // The script has no operation: it may run twice, because a report replaces no later one.
        let script = Script(
            "report", rows: [.report(of: phone.id).signed],
            writes: [insertReport, updateReport].map { report.written(by: $0, device, key) },
            reads: [reportOfPhone(device: device, key: key)])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in try rows[0].first.flatMap(DeviceReports.read) })
    }
}

extension DeviceReport {
    fileprivate func written(by statement: Statement, _ device: SQLValue, _ key: SQLValue) -> BoundStatement {
        statement(
            os: .text(os), osVersion: .text(osVersion), patchLevel: .integer(patchLevel.map { Int64($0) }),
            appVersion: .text(appVersion), model: .text(model), battery: .integer(battery.map { Int64($0) }),
            screenLock: hasScreenLock.map { .bool($0) } ?? .null, rooted: isRooted.map { .bool($0) } ?? .null,
            reportedAt: .timestamp(reportedAt), receivedAt: .timestamp(receivedAt), device: device, key: key)
    }
}

/// Inserts the first report. An existing row keeps its values.
private let insertReport = Statement(
    into: .deviceReport, once: true,
    """
    INSERT INTO device_report
    (device_id, os, os_version, patch_level, app_version, model, battery, screen_lock, rooted, reported_at, received_at)
    SELECT d.id, :os, :osVersion, :patchLevel, :appVersion, :model, :battery, :screenLock, :rooted, :reportedAt,
    :receivedAt FROM device d WHERE \(isActive)
    """)

/// Replaces an earlier report.
private let updateReport = Statement(
    """
    UPDATE device_report SET os = :os, os_version = :osVersion, patch_level = :patchLevel, app_version = :appVersion,
    model = :model, battery = :battery, screen_lock = :screenLock, rooted = :rooted, reported_at = :reportedAt,
    received_at = :receivedAt
    WHERE device_id = :device AND reported_at < :reportedAt AND EXISTS (SELECT 1 FROM device d WHERE \(isActive))
    """)

private let isActive = "d.id = :device AND d.thumbprint = :key AND d.state = 'active'"

private let reportOfPhone = Statement(
    """
    SELECT \(DeviceReports.columns) FROM device d JOIN device_report r ON r.device_id = d.id WHERE \(isActive)
    """)

/// The columns of a report, and how they are read.
public enum DeviceReports {
    /// Reads the last report of a phone with a check of its row; nil if the phone has sent none.
    public static func last(of device: DeviceID) -> Query<DeviceReport?> {
        let script = Script("report", rows: [.report(of: device)], reads: [reportOfDevice(device: .id(device))])
        return Query(script: script) { rows throws(StoreFailure) in try rows[0].first.flatMap(read) }
    }

    private static let reportOfDevice = Statement(
        "SELECT \(columns) FROM device_report r WHERE r.device_id = :device")

    /// Deletes the report of a phone that this change has unbound.
    static func dropped(of device: DeviceID, as operation: Operation) -> BoundStatement {
        dropOfUnbound(device: .id(device), operation: .id(operation))
    }

    private static let dropOfUnbound = Statement(
        """
        DELETE FROM device_report WHERE device_id = :device AND EXISTS
        (SELECT 1 FROM device d WHERE d.id = :device AND d.state = 'revoked' AND d.operation = :operation)
        """)

    /// Deletes the former report of a phone that this change binds. A phone that is bound again
    /// with the same key starts without one.
    static func droppedAtBinding(of device: DeviceID, as operation: Operation) -> BoundStatement {
        dropOfBound(device: .id(device), operation: .id(operation))
    }

    private static let dropOfBound = Statement(
        "DELETE FROM device_report WHERE device_id = :device AND \(AttestationRows.isJustBound)")

    /// Deletes the reports of all other phones of the user, as part of a change that has unbound
    /// them and that `operation` has put into the audit. MariaDB must begin with the user's phones.
    static func droppedOfOthers(than device: DeviceID, of user: UserID, as operation: Operation) -> BoundStatement {
        dropOfOthers(user: .id(user), device: .id(device), operation: .id(operation))
    }

    private static let dropOfOthers = Statement(
        """
        DELETE /*M! r FROM device d STRAIGHT_JOIN device_report r ON r.device_id = d.id
        WHERE d.user_id = :user AND d.id <> :device */
        /*S! FROM device_report WHERE device_id IN (SELECT d.id FROM device d WHERE d.user_id = :user AND d.id <> :device) */
        AND \(Guards.audited)
        """)

    /// The columns of the alias `r`.
    static let columns = """
        r.os AS report_os, r.os_version AS report_os_version, r.patch_level AS report_patch_level,
        r.app_version AS report_app_version, r.model AS report_model, r.battery AS report_battery,
        r.screen_lock AS report_screen_lock, r.rooted AS report_rooted, r.reported_at AS report_reported_at,
        r.received_at AS report_received_at
        """

    /// The columns without a report.
    static let none = "NULL AS report_reported_at"

    /// Returns the report; nil if an outer join found none.
    static func read(_ row: Row) throws(StoreFailure) -> DeviceReport? {
        guard let reportedAt = try row.optionalTimestamp("report_reported_at") else { return nil }
        var report = DeviceReport(reportedAt: reportedAt, receivedAt: try row.timestamp("report_received_at"))
        report.os = try row.optionalText("report_os")
        report.osVersion = try row.optionalText("report_os_version")
        report.patchLevel = try row.optionalInteger("report_patch_level").map { Int($0) }
        report.appVersion = try row.optionalText("report_app_version")
        report.model = try row.optionalText("report_model")
        report.battery = try row.optionalInteger("report_battery").map { Int($0) }
        report.hasScreenLock = try row.isNull("report_screen_lock") ? nil : row.bool("report_screen_lock")
        report.isRooted = try row.isNull("report_rooted") ? nil : row.bool("report_rooted")
        return report
    }
}

/// The searches for reports.
extension SignedRows {
    static func report(of device: DeviceID) -> SignedRows { reportOfDevice(device: .id(device)) }

    private static let reportOfDevice = RowSearch(.deviceReport, where: "device_id = :device")

    static func reports(of user: UserID) -> SignedRows { reportsOfUser(user: .id(user)) }

    private static let reportsOfUser = RowSearch(
        .deviceReport, where: "device_id IN (SELECT d.id FROM device d WHERE d.user_id = :user)")
}
