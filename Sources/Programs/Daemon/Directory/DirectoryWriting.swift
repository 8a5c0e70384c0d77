import Bytes
import Crypto
import Directory
import Domain
import Relay
import Storage
import World

/// Makes the changes of a plan, and counts them.
struct DirectoryWriting {
    let writes: DirectoryWrites
    let website: WebsiteID
    /// Whether the website's policy lets codes go to addresses that the user has not confirmed.
    let isVouched: Bool
    let keys: DirectorySync.Keys
    /// The users that were enabled again.
    private(set) var enabled = 0

    init(writes: DirectoryWrites, website: WebsiteID, isVouched: Bool, keys: DirectorySync.Keys) {
        self.writes = writes
        self.website = website
        self.isVouched = isVouched
        self.keys = keys
    }

    /// Returns the change for an action, under a new operation.
    func change(_ action: DirectoryPlan.Action) throws(Failure) -> Query<Bool> {
        let operation = keys.operations.new()
        switch action {
        case .add(let record):
            let user: UserID = operation.identifier("user")
            return writes.add(
                record, token: keys.operations.draw(),
                factors: try factors(record.addresses, of: user, as: operation), as: operation)
        case .update(let update):
            let changed = update.changedAddresses
            return writes.update(
                update,
                factors: try factors(
                    update.record.addresses.filter { changed.contains($0.kind) }, of: update.user.user, as: operation),
                as: operation)
        case .disable(let user): return writes.disable(user, as: operation)
        }
    }

    /// The factors for addresses. The directory vouches for them, as a website does at /register.
    private func factors(
        _ addresses: [Address], of user: UserID, as operation: Operation
    ) throws(Failure) -> [NewFactor] {
        var factors: [NewFactor] = []
        for address in addresses {
            let id: FactorID = operation.identifier(address.kind.rawValue)
            let sealed: SealedSecret
            do throws(CryptoFailure) {
                let secret = OperationSecret(drawnFrom: keys.randomness)
                sealed = try SealedSecret(
                    secret.factorSecret(address.kind), row: id, kind: address.kind, user: user, website: website,
                    by: keys.sealer, keys.randomness)
            } catch {
                throw Failure(.failed, "\(error)", next: "Run it again: what is done stays done.")
            }
            factors.append(
                NewFactor(
                    id: id, user: user, kind: address.kind, state: isVouched ? .active : .waiting, sealed: sealed,
                    address: address.text, at: writes.now))
        }
        return factors
    }

    /// - Parameter fault: the reason why the change was not made; nil if it was.
    mutating func count(_ action: DirectoryPlan.Action, _ fault: String?, _ outcome: inout DirectorySync.Outcome) {
        if let fault {
            outcome.conflicts.append(DirectoryConflict(action.username, fault))
            return
        }
        switch action {
        case .add: outcome.counts.added += 1
        case .update(let update):
            outcome.counts.changed += 1
            if update.enables { enabled += 1 }
        case .disable: outcome.counts.disabled += 1
        }
    }
}

extension DirectoryRecord {
    fileprivate var addresses: [Address] {
        [email.map { Address(mail: $0) }, phone.map { Address(phone: $0) }].compactMap(\.self)
    }
}

extension DirectoryPlan.Action {
    public var username: String {
        switch self {
        case .add(let record): record.username
        case .update(let update): update.user.username
        case .disable(let user): user.username
        }
    }
}
