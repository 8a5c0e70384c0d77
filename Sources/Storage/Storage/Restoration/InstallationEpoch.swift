import Domain
import Relay
import World

/// The installation's epoch: what distinguishes the time after a restore from the time before it.
///
/// Purpose: a copy that is put back forgets what was used and revoked since. What was handed out
/// before must not count afterwards, even if its row comes back: relays bind nonces, operations and
/// the answers that they keep for repetitions to the epoch.
///
/// Invariant: `twoefay restore` draws a new epoch each time, also for the same copy. While its state
/// is `restoring`, no relay starts.
public struct InstallationEpoch: Sendable, Equatable {
    /// The 16 random bytes of the epoch.
    public let id: [UInt8]
    /// Whether the restore is complete.
    public let isReady: Bool
    /// SHA-256 of the copy that was put back.
    public let source: [UInt8]
    public let beganAt: Timestamp

    public init(id: [UInt8], isReady: Bool, source: [UInt8], beganAt: Timestamp) {
        self.id = id
        self.isReady = isReady
        self.source = source
        self.beganAt = beganAt
    }

    /// Reads the newest epoch; nil if the store was never restored.
    public static let current = Query(
        script: Script("epoch", rows: [newestRow()], reads: [newest()])
    ) { rows throws(StoreFailure) -> InstallationEpoch? in
        guard let row = rows[0].first else { return nil }
        return InstallationEpoch(
            id: try row.blob("epoch"), isReady: try row.text("state") == "ready", source: try row.blob("source"),
            beganAt: try row.timestamp("began_at"))
    }

    private static let isNewest = "began_at = (SELECT max(e.began_at) FROM installation_epoch e)"
    private static let newestRow = RowSearch(.installationEpoch, where: isNewest)
    private static let newest = Statement(
        "SELECT epoch, state, source, began_at FROM installation_epoch WHERE \(isNewest)")

    private static let row = RowSearch(.installationEpoch, where: "epoch = :epoch")

    /// Begins the epoch, which ends all others. No relay starts until `finished`.
    public var begun: Query<Void> {
        let script = Script(
            "epoch", rows: [Self.row(epoch: .blob(id)).signed],
            writes: [
                Self.insert(epoch: .blob(id), source: .blob(source), now: .timestamp(beganAt)),
                Self.dropOthers(epoch: .blob(id)),
            ])
        return Query(script: script) { _ in () }
    }

    private static let insert = Statement(
        into: .installationEpoch, once: true,
        """
        INSERT INTO installation_epoch (epoch, state, source, began_at) SELECT :epoch, 'restoring', :source, :now
        /*M! FROM DUAL */ WHERE 1 = 1
        """)
    private static let dropOthers = Statement("DELETE FROM installation_epoch WHERE epoch <> :epoch")

    /// Completes the restore: relays may start.
    public var finished: Query<Void> {
        let script = Script(
            "epoch", rows: [Self.row(epoch: .blob(id)).signed], writes: [Self.finish(epoch: .blob(id))])
        return Query(script: script) { _ in () }
    }

    private static let finish = Statement("UPDATE installation_epoch SET state = 'ready' WHERE epoch = :epoch")
}
