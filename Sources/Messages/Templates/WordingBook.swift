import Synchronization

/// The words that hold now, for everybody who sends.
public final class WordingBook: Sendable {
    private let wording: Mutex<Wording>

    public init(_ wording: Wording = .builtIn) { self.wording = Mutex(wording) }

    public var current: Wording { wording.withLock { $0 } }

    public func replace(_ wording: Wording) { self.wording.withLock { $0 = wording } }
}
