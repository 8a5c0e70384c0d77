import Synchronization

/// What the phone sees when it is held before the website's screen.
final class ScannedCode: Sendable {
    private let uri = Mutex<String?>(nil)

    func shows(_ uri: String) { self.uri.withLock { $0 = uri } }

    var seen: String? { uri.withLock { $0 } }
}
