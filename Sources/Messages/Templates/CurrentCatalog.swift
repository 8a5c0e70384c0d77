import Synchronization

/// The current message catalogue, shared by all couriers.
public final class CurrentCatalog: Sendable {
    private let wording: Mutex<MessageCatalog>

    public init(_ wording: MessageCatalog = .builtIn) { self.wording = Mutex(wording) }

    public var current: MessageCatalog { wording.withLock { $0 } }

    public func replace(_ wording: MessageCatalog) { self.wording.withLock { $0 = wording } }
}
