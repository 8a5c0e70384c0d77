import Bytes
import Crypto
import Domain
import Log
import Synchronization
import World

/// The store port of idempotency keys: a request that is repeated under the same Idempotency-Key
/// gets the first answer, and changes nothing again.
///
/// The first request writes a row with its fingerprint, its operation and the relay that runs it.
/// When the request ends, the sealed answer is stored in the row. The row is deleted 24 hours after
/// its creation. An answer that held a secret is not stored: the row then only records that it was
/// shown.
///
/// A verb that knows its answer before its change is stored needs neither commit of its own: the change
/// inserts the row with the answer (`IdempotentAnswer`). It does so only if nobody has used the key.
///
/// Invariant: an operation changes the store once, however often it runs. A repetition after an
/// unknown end runs the same operation again, which finds the change done. Two requests do not
/// normally run one operation at the same time. The row's holder ensures this among relays, and
/// `RunningOperations` within one relay.
///
/// Failure modes: the relay dies, and another relay then takes over the row. The store fails when
/// the row is to be released: other relays would see the request as running for as long as this
/// relay lives. So the relay remembers the operation, and releases it when the store is back. A
/// client reuses a key for another request: the fingerprint differs, and the outcome is `mismatch`.
///
/// Tested in `IdempotencyTests.swift`, `TwoRelayIdempotencyTests.swift` and
/// `RunningOperationTests.swift`.
public protocol IdempotencyStore: Sendable {
    /// Writes the row if there is none, and reads it. Returns nil if there is no row and the
    /// website is not active.
    func begin(_ repeatable: IdempotentRequest, as operation: OperationID, relay: RelayID, at: Timestamp)
        async throws(StoreFailure) -> IdempotencyRow?
    /// Takes over a row whose operation no live relay runs. Returns false if another relay was
    /// first.
    func resume(_ repeatable: IdempotentRequest, as operation: OperationID, relay: RelayID) async throws(StoreFailure)
        -> Bool
    /// Stores the answer. If it was shown once and cannot be shown again, the operation's secret is
    /// deleted.
    func finish(_ repeatable: IdempotentRequest, as operation: OperationID, _ kept: StoredResponse)
        async throws(StoreFailure)
    /// Releases operations that no longer run, so that a later request may run them.
    func release(_ ended: [OperationID: IdempotentRequest]) async throws(StoreFailure)
}

/// The identity of a request. Two requests are the same if all these values are equal.
public struct IdempotentRequest: Sendable, Equatable {
    public let website: WebsiteID
    /// SHA-256 of route and key.
    public let digest: [UInt8]
    /// A digest of everything in the request that affects its result. It is SHA-256 outside the
    /// store. In the store it depends on a key: the request may hold addresses, and nobody shall be
    /// able to test a guess of them.
    public private(set) var fingerprint: [UInt8]

    public init(website: WebsiteID, route: String, key: String, content: [UInt8]) {
        self.website = website
        digest = SHA256.hash(Array(route.utf8) + [0] + Array(key.utf8))
        fingerprint = SHA256.hash(content)
    }

    private static let purpose = Array("twoefay request".utf8)

    /// Returns the request as the store has it. A row of another epoch is one of another request.
    func stored(by sealer: Sealer, in epoch: [UInt8]) -> IdempotentRequest {
        var stored = self
        stored.fingerprint = sealer.digest(of: fingerprint, associated: Self.purpose + epoch)
        return stored
    }

    /// Whether the fingerprint of a row is that of this request. Another relay may have written it
    /// under another key of the file.
    func isSame(as row: IdempotencyRow, _ sealer: Sealer, in epoch: [UInt8]) -> Bool {
        sealer.digests(of: fingerprint, associated: Self.purpose + epoch).contains {
            Secret.matches($0, row.fingerprint)
        }
    }
}

/// The stored state of a request under an Idempotency-Key.
public struct IdempotencyRow: Sendable, Equatable {
    public enum State: String, Sendable {
        case running, done, shown
    }

    public let fingerprint: [UInt8]
    public let state: State
    public let operation: OperationID
    /// The relay that runs the request, or that died while it did.
    public let holder: RelayID?
    /// Whether that relay is alive.
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

/// A stored answer; `sealed` is nil if the answer held a secret.
public struct StoredResponse: Sendable {
    public let state: IdempotencyRow.State
    public let status: Int
    public let sealed: [UInt8]?
}

/// A request whose change claims its idempotency key and keeps its answer, instead of one commit
/// before the change and one after it. It is for verbs that know their answer before the commit.
public struct IdempotentAnswer: Sendable {
    public let request: IdempotentRequest
    /// Makes the answer from what the change will have stored.
    let answer: @Sendable (OpenedChallenge) -> (status: Int, body: [UInt8])

    public init(_ request: IdempotentRequest, answer: @escaping @Sendable (OpenedChallenge) -> (Int, [UInt8])) {
        self.request = request
        self.answer = answer
    }
}

/// The row of an idempotency key that a change writes with itself.
public struct IdempotencyClaim: Sendable {
    /// The request as the store has it.
    public let request: IdempotentRequest
    public let createdAt: Timestamp
    /// Seals the answer, from the factor with which the challenge begins.
    public let response: @Sendable (Factor?) throws -> StoredResponse
}

/// The treatment of a request under an Idempotency-Key.
public enum IdempotencyOutcome: Sendable {
    /// Run the request under this operation, then call `finish`. This is the first request, or an
    /// earlier one whose end is unknown.
    case run(Operation)
    /// The request ran before; this is its stored answer.
    case kept(status: Int, body: [UInt8])
    /// The request ran before, and its answer held a secret, which is not shown a second time.
    case shownOnce
    /// The same request is still running.
    case stillRunning
    /// The key was used for another request.
    case mismatch
}

/// The operations that run in this process under an Idempotency-Key. The store records only which
/// relay runs an operation. If the store itself fails, it cannot record that the request has ended.
final class RunningOperations: Sendable {
    private struct State {
        var operations: Set<OperationID> = []
        /// Operations that have ended, although the store could not record it. Other relays see
        /// them as running while this relay lives.
        var ended: [OperationID: IdempotentRequest] = [:]
        /// Operations whose begin failed: it is unknown whether the store has their rows.
        var unbegun: [OperationID: IdempotentRequest] = [:]
    }

    /// The most entries of each of `ended` and `unbegun`. While the store is unavailable no new
    /// operations begin, but more and more requests fail to begin. They have a dictionary of their
    /// own, so that they cannot displace ended operations.
    static let most = 10_000
    /// The number of operations that are released in one transaction.
    static let page = 100

    private let state = Mutex(State())

    /// Adds an operation. Returns false if it runs already.
    @discardableResult func insert(_ operation: OperationID) -> Bool {
        state.withLock { state in
            // The operation runs here again, and its end will be recorded again.
            state.ended[operation] = nil
            state.unbegun[operation] = nil
            return state.operations.insert(operation).inserted
        }
    }

    func remove(_ operation: OperationID) { state.withLock { _ = $0.operations.remove(operation) } }

    func remove(_ some: [OperationID: IdempotentRequest]) { state.withLock { $0.operations.subtract(some.keys) } }

    /// Records operations whose release failed.
    ///
    /// - Parameter hadBegun: whether the store certainly has their rows.
    func leave(_ some: [OperationID: IdempotentRequest], hadBegun: Bool) {
        state.withLock { state in
            state.operations.subtract(some.keys)
            let place = hadBegun ? \State.ended : \State.unbegun
            for (operation, repeatable) in some where state[keyPath: place].count < Self.most {
                state[keyPath: place][operation] = repeatable
            }
        }
    }

    /// Returns some operations that the store has not released yet. They count as running until
    /// they are removed or left again. Otherwise a request could resume one, and the release would
    /// then take it away.
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
    /// The time for which answers and operation secrets are stored.
    static let keptFor = Duration.seconds(24 * 3600)

    /// Begins a request under an Idempotency-Key, or returns how an earlier one ended. After the
    /// outcome `run`, the caller calls `finish` or `release`.
    public func begin(_ repeatable: IdempotentRequest) async throws(Refusal) -> IdempotencyOutcome {
        let fresh = operations.new(isRepeatable: true)
        // Added before the store has the row: a request that finds the row must also find the
        // operation here.
        running.insert(fresh.id)
        let repetition: IdempotencyOutcome
        do throws(Refusal) {
            repetition = try await begin(repeatable, or: fresh)
        } catch {
            // The store may have written the row nevertheless.
            running.leave([fresh.id: repeatable], hadBegun: false)
            throw error
        }
        if case .run(let operation) = repetition, operation.id == fresh.id { return repetition }
        running.remove(fresh.id)
        return repetition
    }

    private func begin(_ repeatable: IdempotentRequest, or fresh: Operation) async throws(Refusal) -> IdempotencyOutcome
    {
        let stored = repeatable.stored(by: sealer, in: epoch)
        let row = try await withStore("idempotency") { () async throws(StoreFailure) in
            try await store.begin(stored, as: fresh.id, relay: id, at: time.now())
        }
        guard let row else { throw .unauthenticated }
        guard repeatable.isSame(as: row, sealer, in: epoch) else { return .mismatch }
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
            // The operation was left by a relay that died, or by this one when the store failed to
            // record its end.
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

    /// Stores the answer. If the store fails here, a repeated request runs again under the same
    /// operation, which changes nothing twice.
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

    /// Returns the row that a change writes with itself.
    ///
    /// - Parameter opened: what the change will have stored, from the challenge's first factor.
    func claim(
        _ kept: IdempotentAnswer, at now: Timestamp, _ opened: @escaping @Sendable (Factor?) -> OpenedChallenge
    ) -> IdempotencyClaim {
        let (sealer, randomness, associated) = (sealer, randomness, associated(kept.request))
        return IdempotencyClaim(request: kept.request.stored(by: sealer, in: epoch), createdAt: now) { factor in
            let (status, body) = kept.answer(opened(factor))
            let sealed = try sealer.seal(body, associated: associated, randomness: randomness)
            return StoredResponse(state: .done, status: status, sealed: sealed)
        }
    }

    /// Releases a request that ended without an answer to store.
    public func release(_ repeatable: IdempotentRequest, _ operation: Operation) async {
        _ = await areReleased([operation.id: repeatable], hadBegun: true)
    }

    /// Releases operations that ended while the store was unavailable, so that any relay may run
    /// them. The daemon's timer calls it every second.
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
