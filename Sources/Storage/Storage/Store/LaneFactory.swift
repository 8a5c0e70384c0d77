import EventLoop
import Log
import World

/// Makes the lanes of one store. Each lane has its own worker; all share limits, keys and clock.
struct LaneFactory {
    let keys: RowKeys
    let author: AuditAuthor
    private let chainsAudit: Bool
    private let limits: Lane.Limits
    private let time: any TimeSource
    private let randomness: any Randomness
    private let log: Log
    private let worker: (String) throws -> any Worker

    init(
        _ options: StoreOptions, time: any TimeSource, randomness: any Randomness, log: Log,
        worker: @escaping (String) throws -> any Worker
    ) {
        keys = RowKeys(options.rows, options.personal)
        author = options.author
        chainsAudit = options.chainsAudit
        var limits = Lane.Limits()
        limits.batch = options.batch
        limits.waiting = options.waiting
        limits.usesShortForms = options.usesShortForms
        self.limits = limits
        self.time = time
        self.randomness = randomness
        self.log = log
        self.worker = worker
    }

    /// Makes a lane over a connected session.
    func lane(_ purpose: Purpose, over session: sending any Session) throws -> Lane {
        let (worker, name) =
            switch purpose {
            case .writing: (try self.worker("store"), "writes")
            case .reading: (try self.worker("store-reads"), "reads")
            case .watching: (try self.worker("store-watch"), "watching")
            }
        return Lane(
            purpose, session: session, worker: worker, time: time, randomness: randomness, limits: limits, keys: keys,
            chain: purpose == .writing && chainsAudit ? AuditChain(author, time: time) : nil,
            log: log.with([.lane: name]))
    }
}
