/// Says when a SQLite write-ahead log is brought into the database file, and by whom.
///
/// SQLite would do it within a commit whenever the log has 1,000 pages. Who commits then waits until
/// up to 1,000 pages, anywhere in the file, have reached the disk: a third of a second and more,
/// where a commit alone takes a few milliseconds. So it is done in small steps by another thread,
/// while commits go on.
///
/// That alone is not enough. SQLite writes on at the end of the log until all of it is in the file,
/// and under steady load something is always new. A log that has become long is therefore brought in
/// by the committing thread itself, when little of it is left to do. The longer the log is, the more
/// counts as little, so its length is bounded at every load.
struct CheckpointPolicy {
    struct Limits {
        /// Pages for which a step is worth its two syncs.
        var step = 100
        /// Pages of a log that is long.
        var long = 2000
        /// Pages that may wait for the other thread, if it does not come forward.
        var most = 8000
    }

    enum Place: Equatable {
        /// On the other thread.
        case beside
        /// On the thread that commits.
        case here
    }

    private let limits: Limits
    /// The length of the log, and how many of its pages are in the file.
    private var pages = 0
    private var checkpointed = 0
    /// The length of the log when it was tried last: a failure is not met again at every commit.
    private var triedAt = 0
    private var isUnderWay = false

    init(_ limits: Limits = Limits()) { self.limits = limits }

    /// A commit has left so many pages in the log. Returns where they are brought in now, if at all; `ended` is called
    /// afterwards.
    mutating func committed(_ pages: Int) -> Place? {
        if pages < self.pages {
            // All of the log was in the file, and SQLite has begun it anew.
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
        // 2 × step of a log that is long, 4 × step of one that is twice as long.
        let isLittle = waiting * limits.long <= 2 * limits.step * pages
        return pages >= limits.long && isLittle ? .here : .beside
    }

    /// - Parameter checkpointed: the pages that are in the file now, of the whole log; nil after a failure.
    mutating func ended(_ place: Place, _ checkpointed: Int?) {
        if place == .beside { isUnderWay = false }
        // The log may have begun anew meanwhile.
        if let checkpointed { self.checkpointed = min(checkpointed, pages) }
    }
}
