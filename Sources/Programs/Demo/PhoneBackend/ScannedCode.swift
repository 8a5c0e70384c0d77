import Synchronization

/// The QR code that the website shows now, for the phone's page to scan.
final class ScannedCode: Sendable {
    private let uri = Mutex<String?>(nil)

    func shows(_ uri: String) { self.uri.withLock { $0 = uri } }

    var seen: String? { uri.withLock { $0 } }
}
