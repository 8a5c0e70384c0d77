import Pushes
import Synchronization
import World

/// A clock that only the test moves.
final class ManualTime: TimeSource {
    private let start: Timestamp
    private let moved = Mutex(Duration.zero)

    init(_ start: Timestamp = Timestamp(milliseconds: 1_800_000_000_500)) { self.start = start }

    func now() -> Timestamp { start + moved.withLock { $0 } }
    func instant() -> Instant { Instant(nanoseconds: 1_000_000) + moved.withLock { $0 } }
    func advance(by duration: Duration) { moved.withLock { $0 += duration } }
}

/// Randomness that always draws the highest allowed number.
struct HighestChance: Randomness {
    func fill(_ bytes: UnsafeMutableRawBufferPointer) {
        for index in bytes.indices { bytes[index] = 0xff }
    }
}

enum Sample {
    static let id = "01234567-89ab-cdef-0123-456789abcdef"
    static let collapseID = "00112233445566778899aabbccddeeff"
    static let token = String(repeating: "a1", count: 32)
    static let payload = Array(
        #"{"aps":{"alert":{"title":"Example Bank"}},"challenge":"00112233445566778899aabbccddeeff"}"#.utf8)

    static func push(
        id: String = Sample.id, token: String = Sample.token,
        environment: APNsNotification.Environment = .production,
        expiresAt: Timestamp = Timestamp(milliseconds: 1_800_000_300_999)
    ) -> APNsNotification {
        APNsNotification(
            id: id, deviceToken: token, environment: environment, payload: payload, collapseID: collapseID,
            expiresAt: expiresAt)
    }
}
