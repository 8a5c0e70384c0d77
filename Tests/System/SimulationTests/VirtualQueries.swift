import Domain
import EventLoop
import Relay
import Storage
import Synchronization
import TestSupport

/// Requests to the store from a scenario's thread. They run on one of the world's loops, and the
/// world's clock goes on until the store has answered.
extension SimulatedWorld {
    func answer<Answer: Sendable>(
        on loop: EventLoop, _ request: @escaping @Sendable () async throws(StoreFailure) -> Answer
    ) throws -> Answer {
        let answer = Mutex<Result<Answer, StoreFailure>?>(nil)
        loop.post { [loop] in
            loop.spawn {
                let outcome: Result<Answer, StoreFailure>
                do throws(StoreFailure) {
                    outcome = .success(try await request())
                } catch {
                    outcome = .failure(error)
                }
                answer.withLock { $0 = outcome }
            }
        }
        _ = run(for: .seconds(60)) { answer.withLock { $0 != nil } }
        guard let outcome = answer.withLock({ $0 }) else { throw RigFailure("the store did not answer") }
        return try outcome.get()
    }

    /// Runs a query that returns one number.
    func number(of sql: String, in relays: SimulatedRelays?, on loop: EventLoop) throws -> Int64 {
        guard let store = relays?.store else { throw RigFailure("there is no store") }
        let script = Script("test", reads: [.value(of: sql)])
        let rows = try answer(on: loop) { () async throws(StoreFailure) in try await store.run(script) }
        return try rows.row(0).integer("value")
    }

    /// Adds a website, as an operator would.
    func add(_ website: Websites.New, to relays: SimulatedRelays, by relay: Relay, on loop: EventLoop) throws {
        let (store, query) = (relays.store, Websites.add(website, as: relay.operations.new()))
        let isAdded = try answer(on: loop) { () async throws(StoreFailure) in try await store.run(query) }
        guard isAdded else { throw RigFailure("the website was not added") }
    }
}
