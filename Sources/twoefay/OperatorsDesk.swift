import Daemon
import Domain
import Relay
import Storage
import World

/// Where an operator's commands meet the store: they change it directly, as a relay would, and a relay that runs sees it
/// at its next request.
struct OperatorsDesk {
    let now: Timestamp
    let settings: Settings
    private let store: Store

    init(_ settings: Settings, time: any TimeSource = SystemTime()) throws(Failure) {
        self.settings = settings
        store = try settings.openStore()
        now = time.now()
    }

    func close() { store.close() }

    func read<Answer>(_ query: Query<Answer>) throws(Failure) -> Answer {
        do throws(StoreFailure) {
            return try store.runBlocking(query)
        } catch {
            throw Failure(store: error)
        }
    }

    /// A change, under an operation of its own.
    func run<Answer>(_ change: (Operation) -> Query<Answer>) throws(Failure) -> Answer {
        try read(change(try newOperation()))
    }

    func newOperation() throws(Failure) -> Operation {
        Operations(masterKey: try settings.loadMasterKey().secret, randomness: SystemRandomness()).new()
    }

    func website(named name: String) throws(Failure) -> Websites.Listed {
        guard let website = try read(Websites.named(name)) else {
            throw Failure(
                .notFound, "there is no website \(name)", next: "'twoefay website list' shows those there are.")
        }
        return website
    }
}
