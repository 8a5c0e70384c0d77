import World

/// The number of webhooks that may be in flight to one website.
///
/// It begins at `least`. Each webhook that the website accepts within `quick` makes it larger by one,
/// up to `most`, if the window was full meanwhile. So a full window doubles with each round of quick
/// answers. Each webhook that is accepted later makes it smaller by one: the receiver has begun to
/// queue. Any other outcome resets it. Tests: `WebhookWindowTests`.
public struct WebhookWindow: Sendable, Equatable {
    /// The size for a website of which nothing is known.
    public static let least = 4
    /// Most servers allow a hundred requests at a time on one HTTP/2 connection.
    public static let most = 100
    /// The longest time until an answer that counts as quick.
    public static let quick = Duration.milliseconds(100)
    /// The time after which a window that was not full is reset. The website may have changed.
    public static let memory = Duration.seconds(10)

    private var size = WebhookWindow.least
    /// When the window was full last.
    private var fullAt: Timestamp?

    public init() {}

    public func size(at now: Timestamp) -> Int { hasGrown(at: now) ? size : Self.least }

    /// Records that as many webhooks are in flight as may be.
    mutating func fill(at now: Timestamp) { (size, fullAt) = (size(at: now), now) }

    /// Records the end of an attempt.
    mutating func end(_ meaning: WebhookOutcome.Meaning, sentAt: Timestamp, at now: Timestamp) {
        guard meaning == .delivered else { return reset() }
        if now - sentAt > Self.quick {
            size = max(size - 1, Self.least)
        } else if let fullAt, fullAt >= sentAt {
            size = min(size + 1, Self.most)
        }
    }

    mutating func reset() { (size, fullAt) = (Self.least, nil) }

    /// Whether the window is larger than at the beginning, and was full recently.
    func hasGrown(at now: Timestamp) -> Bool {
        guard size > Self.least, let fullAt else { return false }
        // If the clock went back, the window begins again.
        return fullAt <= now && now - fullAt < Self.memory
    }
}
