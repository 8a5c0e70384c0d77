import Glibc

/// The commands at the control socket that run, and those that wait for a thread.
///
/// Purpose: an account leaves threads to others, and reads leave one to changes. So nobody delays the
/// lock of a user, or a reload, by searches through the whole store.
///
/// `ControlQueueTests.swift` tests it.
struct ControlQueue<Job, Thread> {
    /// The commands of one account that run at once.
    static var mostOfOne: Int { 2 }

    private struct Entry {
        let user: uid_t
        let isChange: Bool
        let job: Job
    }

    /// A job that runs, and its thread.
    typealias Started = (job: Job, thread: Thread)

    private let mostReads: Int
    private var idle: [Thread]
    private var waiting: [Entry] = []
    private var running: [uid_t: Int] = [:]
    private var reads = 0

    /// - Parameter threads: two or more.
    init(threads: [Thread]) {
        idle = threads
        mostReads = threads.count - 1
    }

    /// The jobs that wait, in the order of their arrival.
    var jobs: [Job] { waiting.map(\.job) }

    /// Adds a job. Returns it if it may run now: those that wait already may not.
    mutating func add(_ job: Job, of user: uid_t, isChange: Bool) -> Started? {
        waiting.append(Entry(user: user, isChange: isChange, job: job))
        return next()
    }

    /// Ends a job that ran. Returns the next one, which runs now; nil if none may.
    mutating func end(of user: uid_t, isChange: Bool, on thread: Thread) -> Started? {
        idle.append(thread)
        if !isChange { reads -= 1 }
        let left = running[user, default: 1] - 1
        running[user] = left > 0 ? left : nil
        return next()
    }

    /// Forgets the jobs that wait.
    mutating func clear() { waiting = [] }

    private func mayRun(_ entry: Entry) -> Bool {
        running[entry.user, default: 0] < Self.mostOfOne && (entry.isChange || reads < mostReads)
    }

    /// Takes the first job that may run, and a thread.
    private mutating func next() -> Started? {
        guard let index = waiting.firstIndex(where: mayRun), let thread = idle.popLast() else { return nil }
        let entry = waiting.remove(at: index)
        if !entry.isChange { reads += 1 }
        running[entry.user, default: 0] += 1
        return (entry.job, thread)
    }
}
