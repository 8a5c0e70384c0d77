import Bytes
import Crypto
import Domain
import Log
import Synchronization
import World

/// A request that comes again under the same Idempotency-Key gets the answer it had, and changes nothing again.
public protocol IdempotencyStore: Sendable {
    /// Writes the row if there is none, and reads it.
    func begin(_ repeatable: IdempotentRequest, as operation: OperationID, relay: RelayID, at: Timestamp)
        async throws(StoreFailure) -> IdempotencyRow?
    /// Takes a row over that nobody runs any more. False when another was first.
    func resume(_ repeatable: IdempotentRequest, as operation: OperationID, relay: RelayID) async throws(StoreFailure)
        -> Bool
    func finish(_ repeatable: IdempotentRequest, as operation: OperationID, _ kept: StoredResponse)
        async throws(StoreFailure)
    /// Nobody runs these now; a later request may.
    func release(_ ended: [OperationID: IdempotentRequest]) async throws(StoreFailure)
}

/// What makes two requests the same.
public struct IdempotentRequest: Sendable, Equatable {
    public let website: WebsiteID
    /// SHA-256 of route and key.
    public let digest: [UInt8]
    /// SHA-256 of everything in the request that has a meaning.
    public let fingerprint: [UInt8]

    public init(website: WebsiteID, route: String, key: String, content: [UInt8]) {
        self.website = website
        digest = SHA256.hash(Array(route.utf8) + [0] + Array(key.utf8))
        fingerprint = SHA256.hash(content)
    }
}

public struct IdempotencyRow: Sendable, Equatable {
    public enum State: String, Sendable {
        case running, done, shown
    }

    public let fingerprint: [UInt8]
    public let state: State
    public let operation: OperationID
    /// The relay that runs it, or has died while it did.
    public let holder: RelayID?
    /// That relay lives.
    public let isHeld: Bool
    public let status: Int?
    public let sealed: [UInt8]?
    public let createdAt: Timestamp

    public init(
        fingerprint: [UInt8], state: State, operation: OperationID, holder: RelayID?, isHeld: Bool, status: Int?,
        sealed: [UInt8]?, createdAt: Timestamp
    ) {
        self.fingerprint = fingerprint
        self.state = state
        self.operation = operation
        self.holder = holder
        self.isHeld = isHeld
        self.status = status
        self.sealed = sealed
        self.createdAt = createdAt
    }
}

public struct StoredResponse: Sendable {
    public let state: IdempotencyRow.State
    public let status: Int
    public let sealed: [UInt8]?
}

public enum IdempotencyOutcome: Sendable {
    /// The first time, or a time after which nobody knows how it ended: run under this operation, then finish.
    case run(Operation)
    case kept(status: Int, body: [UInt8])
    /// It held a secret, which is not shown a second time.
    case shownOnce
    case stillRunning
    case mismatch
}

/// The operations that run in this process under an Idempotency-Key. The store knows the relay alone, and cannot be told
/// that a request has ended when it was the store that failed.
final class RunningOperations: Sendable {
    private struct State {
        var operations: Set<OperationID> = []
        /// They run no more, and the store could not be told. To other relays they run as long as this one lives.
        var ended: [OperationID: IdempotentRequest] = [:]
        /// Of these it is not even known whether the store has them.
        var unbegun: [OperationID: IdempotentRequest] = [:]
    }

    /// More of either are not remembered. While the store is away no more begin than were under way, but more and more fail
    /// to: they take no place of the others.
    static let most = 10_000
    /// The store is told of so many at once.
    static let page = 100

    private let state = Mutex(State())

    /// False when it runs already.
    @discardableResult func insert(_ operation: OperationID) -> Bool {
        state.withLock { state in
            // Taken up again here: its end will be told anew.
            state.ended[operation] = nil
            state.unbegun[operation] = nil
            return state.operations.insert(operation).inserted
        }
    }

    func remove(_ operation: OperationID) { state.withLock { _ = $0.operations.remove(operation) } }

    func remove(_ some: [OperationID: IdempotentRequest]) { state.withLock { $0.operations.subtract(some.keys) } }

    /// They have ended, or did not even begin as far as is known, and the store is still to be told.
    func leave(_ some: [OperationID: IdempotentRequest], hadBegun: Bool) {
        state.withLock { state in
            state.operations.subtract(some.keys)
            let place = hadBegun ? \State.ended : \State.unbegun
            for (operation, repeatable) in some where state[keyPath: place].count < Self.most {
                state[keyPath: place][operation] = repeatable
            }
        }
    }

    /// Some of those that the store is still to be told of. Until they are removed or left again they count as running: who
    /// took one up while the store is told would lose it again.
    func takeLeft() -> (some: [OperationID: IdempotentRequest], hadBegun: Bool) {
        state.withLock { state in
            let hadBegun = !state.ended.isEmpty
            let place = hadBegun ? \State.ended : \State.unbegun
            var some: [OperationID: IdempotentRequest] = [:]
            for (operation, repeatable) in state[keyPath: place].prefix(Self.page) { some[operation] = repeatable }
            for operation in some.keys { state[keyPath: place][operation] = nil }
            state.operations.formUnion(some.keys)
            return (some, hadBegun)
        }
    }
}

extension Relay {
    static let keptFor = Duration.seconds(24 * 3600)

    public func begin(_ repeatable: IdempotentRequest) async throws(Refusal) -> IdempotencyOutcome {
        let fresh = operations.new(isRepeatable: true)
        // Before the store has it: whoever finds it there must find it here.
        running.insert(fresh.id)
        let repetition: IdempotencyOutcome
        do throws(Refusal) {
            repetition = try await begin(repeatable, or: fresh)
        } catch {
            // The store may have it all the same.
            running.leave([fresh.id: repeatable], hadBegun: false)
            throw error
        }
        if case .run(let operation) = repetition, operation.id == fresh.id { return repetition }
        running.remove(fresh.id)
        return repetition
    }

    private func begin(_ repeatable: IdempotentRequest, or fresh: Operation) async throws(Refusal) -> IdempotencyOutcome
    {
        let row = try await withStore("idempotency") { () async throws(StoreFailure) in
            try await store.begin(repeatable, as: fresh.id, relay: id, at: time.now())
        }
        guard let row else { throw .unauthenticated }
        guard Secret.matches(row.fingerprint, repeatable.fingerprint) else { return .mismatch }
        switch row.state {
        case .shown: return .shownOnce
        case .done:
            guard let status = row.status, let sealed = row.sealed,
                let body = try? sealer.open(sealed, associated: associated(repeatable))
            else {
                log.error("idempotency.sealed", [.operation: row.operation.text])
                throw .broken
            }
            return .kept(status: status, body: body)
        case .running where row.operation == fresh.id: return .run(fresh)
        case .running where row.isHeld && row.holder != id: return .stillRunning
        case .running:
            // Left by a relay that died, or by this one when the store failed before it could be told of the end.
            guard running.insert(row.operation) else { return .stillRunning }
            do throws(Refusal) {
                let mine = try await withStore("idempotency") { () async throws(StoreFailure) in
                    try await store.resume(repeatable, as: row.operation, relay: id)
                }
                if mine { return .run(operations.again(row.operation, begunAt: row.createdAt)) }
            } catch {
                running.leave([row.operation: repeatable], hadBegun: true)
                throw error
            }
            running.remove(row.operation)
            return .stillRunning
        }
    }

    /// Keeps the answer. When the store fails here, the same request runs again under the same operation, which
    /// changes nothing twice.
    public func finish(
        _ repeatable: IdempotentRequest, _ operation: Operation, status: Int, body: [UInt8], holdsSecret: Bool
    ) async throws(Refusal) {
        let sealed: [UInt8]?
        do {
            sealed =
                holdsSecret
                ? nil : try sealer.seal(body, associated: associated(repeatable), randomness: randomness)
        } catch {
            log.error("idempotency.seal", [.error: "\(error)"])
            throw .broken
        }
        let kept = StoredResponse(state: holdsSecret ? .shown : .done, status: status, sealed: sealed)
        try await withStore("idempotency") { () async throws(StoreFailure) in
            try await store.finish(repeatable, as: operation.id, kept)
        }
        running.remove(operation.id)
    }

    /// The request ended without an answer to keep.
    public func release(_ repeatable: IdempotentRequest, _ operation: Operation) async {
        _ = await areReleased([operation.id: repeatable], hadBegun: true)
    }

    /// Called by the daemon's timer every second. Once the store can be told again, what has ended here may run at any relay.
    public func releaseLeft() async {
        while true {
            let (some, hadBegun) = running.takeLeft()
            guard !some.isEmpty, await areReleased(some, hadBegun: hadBegun) else { return }
        }
    }

    private func areReleased(_ ended: [OperationID: IdempotentRequest], hadBegun: Bool) async -> Bool {
        do throws(Refusal) {
            try await withStore("idempotency") { () async throws(StoreFailure) in try await store.release(ended) }
            running.remove(ended)
            return true
        } catch {
            running.leave(ended, hadBegun: hadBegun)
            return false
        }
    }

    private func associated(_ repeatable: IdempotentRequest) -> [UInt8] {
        Array("idempotency".utf8) + repeatable.website.bytes + repeatable.digest
    }
}
