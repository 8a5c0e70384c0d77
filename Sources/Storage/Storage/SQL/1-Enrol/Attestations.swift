import Domain
import Relay
import World

extension Store: AttestationStore {
    public func attestation(of device: DeviceID) async throws(StoreFailure) -> AttestationRow? {
        try await run(
            Query(
                script: Script(
                    "attestation", rows: [.attestation(of: device)], reads: [attestationOfDevice(device: .id(device))])
            ) { rows throws(StoreFailure) in
                try rows[0].first.map(AttestationRows.read)
            })
    }

    public func attestations(of user: UserID) async throws(StoreFailure) -> [AttestationRow] {
        try await run(
            Query(
                script: Script(
                    "attestations", rows: [.attestations(of: user)], reads: [attestationsOfUser(user: .id(user))])
            ) { rows throws(StoreFailure) in
                var attestations: [AttestationRow] = []
                for row in rows[0] { attestations.append(try AttestationRows.read(row)) }
                return attestations
            })
    }

    public func report(of device: DeviceID) async throws(StoreFailure) -> DeviceReport? {
        try await run(DeviceReports.last(of: device))
    }

    public func recordNotAttested(_ refused: NotAttested, as operation: Operation) async throws(StoreFailure) {
        let change = Change(
            "not attested", operation,
            [
                auditNotAttested(
                    operation: .id(operation), now: .timestamp(refused.at), website: .id(refused.website),
                    user: .id(refused.user), device: .id(refused.device), fault: .word(refused.fault))
            ])
        try await run(Query(change: change) { _ in () })
    }
}

private let attestationOfDevice = Statement("\(AttestationRows.select) WHERE a.device_id = :device")
private let attestationsOfUser = Statement("\(AttestationRows.select) WHERE a.user_id = :user")

private let auditNotAttested = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, device_id, outcome)
    SELECT :operation, :now, 'attestation.refused', :website, :user, :device, :fault /*M! FROM DUAL */ WHERE 1 = 1
    \(Audit.once)
    """)

/// The attestations of phones: their columns, and the statements of the changes that write them.
enum AttestationRows {
    static let select = """
        SELECT a.device_id AS attested_device, a.verdict, a.faults, a.facts, a.statement, a.activation_code, a.app_key,
        a.counter AS assertions, a.judged_at, a.operation AS binding FROM attestation a
        """

    static func read(_ row: Row) throws(StoreFailure) -> AttestationRow {
        let counter = try row.integer("assertions")
        guard let counter = UInt32(exactly: counter) else { throw .internal("the counter \(counter) is out of range") }
        return AttestationRow(
            device: try row.id("attested_device"), verdict: try row.word("verdict"),
            faults: try row.text("faults").split(separator: ",").map { String($0) },
            facts: try row.optionalText("facts"), statement: try row.optionalText("statement"),
            activationCode: try row.text("activation_code"), appKey: try row.optionalBlob("app_key"), counter: counter,
            judgedAt: try row.timestamp("judged_at"), binding: try row.id("binding"))
    }

    /// The condition that an approval relies on no attestation, or that the stored one is as it was
    /// read.
    static let isAsRead = """
        (:binding IS NULL OR EXISTS (SELECT 1 FROM attestation a
        WHERE a.device_id = :device AND a.operation = :binding AND a.counter = :counter))
        """
}

/// The part of a binding that stores the attestation. A binding without one deletes the former one.
extension AttestationRows {
    static func dropReplaced(_ device: DeviceID, as operation: Operation) -> BoundStatement {
        dropOfBound(device: .id(device), operation: .id(operation))
    }

    private static let dropOfBound = Statement("DELETE FROM attestation WHERE device_id = :device AND \(isJustBound)")

    static func inserted(_ device: NewDevice, as operation: Operation) -> BoundStatement {
        let new = device.attestation
        return insert(
            device: .id(device.id), user: .id(device.user), verdict: .word(new?.verdict),
            faults: .text(new?.faults.joined(separator: ",")), facts: .text(new?.facts),
            statement: .text(new?.statement), code: .text(new?.activationCode), key: .blob(new?.appKey),
            counter: .integer(new.map { Int64($0.counter) }), now: .timestamp(new?.judgedAt),
            operation: .id(operation), exists: .bool(new != nil))
    }

    private static let insert = Statement(
        into: .attestation, once: true,
        """
        INSERT INTO attestation (device_id, user_id, verdict, faults, facts, statement, activation_code, app_key, counter,
        judged_at, operation)
        SELECT :device, :user, :verdict, :faults, :facts, :statement, :code, :key, :counter, :now, :operation
        /*M! FROM DUAL */ WHERE :exists = 1 AND \(isJustBound)
        """)

    /// The condition that this operation has written the phone and is not yet in the audit.
    static let isJustBound = """
        EXISTS (SELECT 1 FROM device d WHERE d.id = :device AND d.operation = :operation) AND NOT \(Guards.audited)
        """

    /// Deletes the attestations of phones that were deleted or unbound. Their certificates are no
    /// longer needed: an unbound key stays unbound.
    static func dropOrphans(of user: UserID) -> BoundStatement { dropWithoutPhone(user: .id(user)) }

    private static let dropWithoutPhone = Statement(
        """
        DELETE FROM attestation WHERE user_id = :user
        AND NOT EXISTS (SELECT 1 FROM device d WHERE d.id = attestation.device_id AND d.state <> 'revoked')
        """)
}

/// The part of an approval that stores the counter of its assertion.
extension AttestationRows {
    static func count(
        _ counter: UInt32, of device: DeviceID, endedWith challenge: SQLValue, as operation: Operation
    ) -> BoundStatement {
        setCounter(
            counter: .integer(Int64(counter)), device: .id(device), challenge: challenge, operation: .id(operation))
    }

    private static let setCounter = Statement(
        """
        UPDATE attestation SET counter = :counter WHERE device_id = :device AND counter < :counter
        AND \(Guards.challengeWritten)
        """)
}

/// The searches for attestations.
extension SignedRows {
    static func attestation(of device: DeviceID) -> SignedRows { attestationByDevice(device: .id(device)) }

    private static let attestationByDevice = RowSearch(.attestation, where: "device_id = :device")

    static func attestations(of user: UserID) -> SignedRows { attestationsByUser(user: .id(user)) }

    private static let attestationsByUser = RowSearch(.attestation, where: "user_id = :user")
}
