/// Decides when SQLite's write-ahead log is copied into the database file, and on which thread.
///
/// SQLite by default checkpoints within a commit when the log has 1,000 pages. That commit then
/// waits until up to 1,000 pages, anywhere in the file, are on the disk. This takes a third of a
/// second or more, while a commit alone takes a few milliseconds. Therefore another thread
/// checkpoints in small steps while commits continue.
///
/// This alone is not enough. SQLite appends to the log until all of it is in the file, and under
/// steady load there are always new pages. Therefore the committing thread itself checkpoints a
/// long log when few pages remain to be copied. The longer the log is, the more pages count as few,
/// so the length of the log is bounded under every load.
struct CheckpointPolicy {
    struct Limits {
        /// The number of new pages that is worth a step, with its two syncs.
        var step = 100
        /// The number of pages from which a log is long.
        var long = 2000
        /// The number of waiting pages from which the committing thread checkpoints although the
        /// other thread is running.
        var most = 8000
    }

    /// The thread that checkpoints.
    enum Place: Equatable {
        /// The checkpointer's own thread.
        case beside
        /// The thread that commits.
        case here
    }

    private let limits: Limits
    /// The number of pages in the log, and how many of them are in the file.
    private var pages = 0
    private var checkpointed = 0
    /// The length of the log at the last attempt, so that a failing checkpoint is not repeated at
    /// every commit.
    private var triedAt = 0
    private var isUnderWay = false

    init(_ limits: Limits = Limits()) { self.limits = limits }

    /// Records that the log has `pages` pages after a commit. It returns the thread that must
    /// checkpoint now, or nil. The caller calls `ended` after the checkpoint.
    mutating func committed(_ pages: Int) -> Place? {
        if pages < self.pages {
            // The whole log was in the file, and SQLite has started it again.
            checkpointed = 0
            triedAt = 0
        }
        self.pages = pages
        guard pages - max(checkpointed, triedAt) >= limits.step else { return nil }
        let place = place(for: pages - checkpointed)
        if place != nil { triedAt = pages }
        if place == .beside { isUnderWay = true }
        return place
    }

    private func place(for waiting: Int) -> Place? {
        if isUnderWay { return waiting >= limits.most ? .here : nil }
        // Few pages are 2 × step if the log is long, and 4 × step if it is twice as long.
        let isLittle = waiting * limits.long <= 2 * limits.step * pages
        return pages >= limits.long && isLittle ? .here : .beside
    }

    /// Records the end of a checkpoint.
    ///
    /// - Parameter checkpointed: the number of pages of the whole log that are in the file now; nil
    ///   after a failure.
    mutating func ended(_ place: Place, _ checkpointed: Int?) {
        if place == .beside { isUnderWay = false }
        // SQLite may have started the log again since the checkpoint.
        if let checkpointed { self.checkpointed = min(checkpointed, pages) }
    }
}
