import Domain
import Relay

extension Store: StatedPinStore {
    public func record(pinSequence: Int64, of device: DeviceID) async throws(StoreFailure) {
        let write = notePins(sequence: .integer(pinSequence), device: .id(device))
        _ = try await run(Script("pins taken", writes: [write]))
    }
}

private let notePins = Statement(
    "UPDATE device SET pin_sequence = :sequence WHERE id = :device AND pin_sequence < :sequence")

/// The phones by the pins that they hold.
public enum StatedPins {
    /// Counts the active phones that have not taken the newest pin of the statement with this number.
    public static func missing(_ sequence: Int64) -> Query<Int64> {
        Query(script: Script("pins missing", reads: [countMissing(sequence: .integer(sequence))])) {
            rows throws(StoreFailure) in try rows[0].first?.integer("missing_count") ?? 0
        }
    }

    private static let countMissing = Statement(
        """
        SELECT count(*) AS missing_count FROM device WHERE state = 'active' AND pin_sequence < :sequence
        """)
}
