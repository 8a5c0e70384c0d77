import Bytes
import Commands
import Crypto
import Daemon
import Domain
import JSON
import Storage
import TokenFiles
import World

/// The import of tokens as factors of users in the store.
struct TokenImport {
    private enum Action {
        case add, replace, keep
    }

    private struct Item {
        let owned: TokenFileInput.Owned
        let user: UserID
        let action: Action
        let meeting: FactorImport.Meeting
    }

    /// The number of tokens that are looked up or written in one transaction.
    private static let chunk = 200

    let website: Websites.Listed
    let store: OperatorStore
    let sealer: Sealer
    let replaces: Bool
    let progress: ProgressLines
    private var items: [Item] = []
    private var unknown: [String] = []
    private var done: [Action: Int] = [:]

    init(
        website: Websites.Listed, store: OperatorStore, sealer: Sealer, replaces: Bool, progress: ProgressLines
    ) {
        self.website = website
        self.store = store
        self.sealer = sealer
        self.replaces = replaces
        self.progress = progress
    }

    /// Looks up the users and plans an action for each token. It changes nothing. If a user is
    /// missing it throws, unless unknown users are skipped.
    mutating func plan(
        _ owned: [TokenFileInput.Owned], skippingUnknown: Bool, file: String
    ) throws(Failure) {
        for start in stride(from: 0, to: owned.count, by: Self.chunk) {
            let some = owned[start..<min(start + Self.chunk, owned.count)]
            let subjects = try store.read(
                FactorImport.subjects(some.map { ($0.username, $0.seed.kind.factor) }, of: website.id))
            for (owned, subject) in zip(some, subjects) {
                guard let subject else {
                    unknown.append(owned.username)
                    continue
                }
                items.append(item(owned, subject))
            }
            progress.show(start + some.count, of: owned.count, "tokens read")
        }
        guard unknown.isEmpty || skippingUnknown else {
            throw Failure(
                .notFound,
                "\(website.name) has no user \(unknown.prefix(20).joined(separator: ", "))"
                    + (unknown.count > 20 ? " and \(unknown.count - 20) more" : ""),
                next:
                    "Nothing was changed. Let the website register these users, correct the names (also with a --map), or give --skip-unknown."
            )
        }
        for item in items { done[item.action, default: 0] += 1 }
    }

    private func item(_ owned: TokenFileInput.Owned, _ subject: FactorImport.Subject) -> Item {
        func item(_ action: Action, _ meeting: FactorImport.Meeting) -> Item {
            Item(owned: owned, user: subject.user, action: action, meeting: meeting)
        }
        guard let held = subject.held else { return item(.add, .keep) }
        guard replaces else { return item(.keep, .keep) }
        let associated = FactorSeal.associated(
            website: website.id, user: subject.user, kind: owned.seed.kind.factor, row: held.id)
        let before = held.secret.flatMap { try? sealer.open($0, associated: associated) } ?? []
        let isSame = Secret.matches(before, owned.seed.secret.reveal())
        return item(.replace, isSame ? .renew(held.id) : .replace)
    }

    mutating func carryOut() throws(Failure) {
        let work = items.filter { $0.action != .keep }
        for start in stride(from: 0, to: work.count, by: Self.chunk) {
            let some = work[start..<min(start + Self.chunk, work.count)]
            var changes: [Query<Bool>] = []
            for item in some { changes.append(try change(item)) }
            let results: [Bool]
            do throws(Failure) {
                results = try store.readAll(changes)
            } catch {
                throw Failure(
                    error.code, "\(error.message)\nIt stopped after \(start) of \(work.count) tokens.",
                    next: "Run it again: a user who has the token already keeps it.")
            }
            // Another command may have changed the factor meanwhile, or the user may have been
            // deleted.
            for (item, isDone) in zip(some, results) where !isDone {
                done[item.action, default: 1] -= 1
                done[.keep, default: 0] += 1
            }
            progress.show(start + some.count, of: work.count, "tokens")
        }
    }

    private func change(_ item: Item) throws(Failure) -> Query<Bool> {
        let operation = try store.newOperation()
        let seed = item.owned.seed
        let (kind, id): (Factor, FactorID) = (seed.kind.factor, operation.identifier("factor"))
        let associated = FactorSeal.associated(website: website.id, user: item.user, kind: kind, row: id)
        let sealed: [UInt8]
        do throws(CryptoFailure) {
            sealed = try sealer.seal(seed.secret.reveal(), associated: associated)
        } catch {
            throw Failure(.failed, "\(error)", next: "Run it again: a user who has the token already keeps it.")
        }
        let (period, counter): (Int?, Int64) =
            switch seed.kind {
            case .totp(let seconds): (seconds, 0)
            case .hotp(let counter): (nil, counter)
            }
        let new = FactorImport.New(
            id: id, user: item.user, kind: kind, secret: sealed, sealedBy: sealer.currentID,
            algorithm: seed.hash.algorithm, digits: seed.digits, period: period, counter: counter, createdAt: store.now)
        return FactorImport.write(new, item.meeting, as: operation)
    }

    func report(remarks: [String], isDryRun: Bool) -> Report {
        func count(_ action: Action) -> Int { done[action] ?? 0 }
        var lines = [
            isDryRun
                ? "Nothing was changed. Without --dry-run, the import to \(website.name) would be:"
                : "The tokens are imported to \(website.name). Their codes are valid from now on:",
            "  \(count(.add)) new, \(count(.replace)) replaced, \(count(.keep)) kept",
        ]
        if !unknown.isEmpty {
            lines.append(
                "  \(unknown.count) left out, without a user: \(unknown.prefix(20).joined(separator: ", "))")
        }
        return Report(
            (lines + remarks).joined(separator: "\n"),
            json: .object([
                "website": .string(website.name), "dry_run": .bool(isDryRun),
                "added": .integer(Int64(count(.add))), "replaced": .integer(Int64(count(.replace))),
                "kept": .integer(Int64(count(.keep))), "unknown": .array(unknown.map { .string($0) }),
                "remarks": .array(remarks.map { .string($0) }),
            ]))
    }
}

extension Seed.Kind {
    var factor: Factor {
        switch self {
        case .totp: .totp
        case .hotp: .hotp
        }
    }
}

extension Seed.Hash {
    fileprivate var algorithm: OTPAlgorithm {
        switch self {
        case .sha1: .sha1
        case .sha256: .sha256
        case .sha512: .sha512
        }
    }
}
