import Glibc

/// The commands at the control socket that run, and those that wait for a thread.
///
/// Purpose: an account leaves threads to others, and reads leave one to changes. So nobody delays the
/// lock of a user, or a reload, by searches through the whole store.
///
/// `ControlQueueTests.swift` tests it.
struct ControlQueue<Job> {
    /// The commands of one account that run at once.
    static var mostOfOne: Int { 2 }

    private struct Entry {
        let user: uid_t
        let isChange: Bool
        let job: Job
    }

    private let threads: Int
    private var waiting: [Entry] = []
    private var running: [uid_t: Int] = [:]
    private var (all, reads) = (0, 0)

    /// - Parameter threads: two or more.
    init(threads: Int) { self.threads = threads }

    /// The jobs that wait, in the order of their arrival.
    var jobs: [Job] { waiting.map(\.job) }

    /// Adds a job. Returns it if it may run now.
    mutating func add(_ job: Job, of user: uid_t, isChange: Bool) -> Job? {
        let entry = Entry(user: user, isChange: isChange, job: job)
        guard mayRun(entry) else {
            waiting.append(entry)
            return nil
        }
        return begin(entry)
    }

    /// Ends a job that ran. Returns the next one, which runs now; nil if none may.
    mutating func end(of user: uid_t, isChange: Bool) -> Job? {
        all -= 1
        if !isChange { reads -= 1 }
        let left = running[user, default: 1] - 1
        running[user] = left > 0 ? left : nil
        return waiting.firstIndex(where: mayRun).map { begin(waiting.remove(at: $0)) }
    }

    /// Forgets the jobs that wait.
    mutating func clear() { waiting = [] }

    private func mayRun(_ entry: Entry) -> Bool {
        all < threads && running[entry.user, default: 0] < Self.mostOfOne && (entry.isChange || reads < threads - 1)
    }

    private mutating func begin(_ entry: Entry) -> Job {
        all += 1
        if !entry.isChange { reads += 1 }
        running[entry.user, default: 0] += 1
        return entry.job
    }
}
