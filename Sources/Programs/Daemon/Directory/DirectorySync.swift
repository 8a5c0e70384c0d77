import Bytes
import Crypto
import Directory
import Domain
import Relay
import Storage
import World

/// Syncs the users of a website with their source, once.
///
/// Order: the run is recorded first, so that any earlier sync of the source changes nothing more.
/// Then the source is read to its end, the changes are planned, and only then is anything written.
/// A source that fails, ends in the middle or is empty changes nothing. A sync that a newer one
/// overtakes fails, too: its plan is outdated. If the policy of a group does not fit that of the
/// website, the sync fails after it has disabled the leavers: they must not stay until somebody
/// corrects the settings.
///
/// It blocks, on the source and on the store, so it must not run on a loop. A sync that dies leaves
/// each user as it was or as its entry says; the next sync does the rest. Tested in
/// `DirectorySyncTests.swift` with slapd, on both stores.
public struct DirectorySync: Sendable {
    /// The keys of an installation that a sync needs.
    public struct Keys: Sendable {
        let operations: Operations
        let sealer: Sealer
        let randomness: any Randomness

        public init(operations: Operations, sealer: Sealer, randomness: any Randomness) {
            self.operations = operations
            self.sealer = sealer
            self.randomness = randomness
        }
    }

    /// The result of a sync, or of a dry run.
    public struct Outcome: Sendable {
        public let plan: DirectoryPlan
        /// The conflicts of the plan, and the changes that could not be made.
        public internal(set) var conflicts: [DirectoryConflict]
        public internal(set) var counts = DirectoryRuns.Counts()
    }

    /// The number of users that are read or written at once. Their scripts wait for the store
    /// together, so there must not be more than it runs within the time limit of a script, also on
    /// a busy machine.
    private static let chunk = 50

    private let directory: Settings.DirectorySettings
    private let settings: Settings
    private let store: Store
    private let time: any TimeSource
    private let progress: ProgressLines?

    /// - Parameter progress: shows an operator how far it is.
    public init(
        _ directory: Settings.DirectorySettings, _ settings: Settings, store: Store, time: any TimeSource,
        progress: ProgressLines? = nil
    ) {
        self.directory = directory
        self.settings = settings
        self.store = store
        self.time = time
        self.progress = progress
    }

    /// Reads the source and plans the changes. It changes nothing.
    public func dryRun() throws(Failure) -> Outcome {
        let website = try website()
        try settings.requireGroups(of: website.name, under: try policy(website))
        let plan = try plan(website.id)
        return Outcome(plan: plan, conflicts: plan.conflicts)
    }

    /// Syncs on behalf of an operator.
    public func run(_ keys: Keys, allowsMany: Bool) throws(Failure) -> Outcome {
        let run: OperationID = keys.operations.draw()
        try ask(DirectoryRuns.begin(directory.name, run, at: time.now()))
        return try carryOut(run, keys, allowsMany: allowsMany, isStopped: { false })
    }

    /// Syncs as the run that the store has already recorded.
    ///
    /// - Parameter isStopped: whether to stop before the next change.
    func carryOut(
        _ run: OperationID, _ keys: Keys, allowsMany: Bool, isStopped: () -> Bool
    ) throws(Failure) -> Outcome {
        do throws(Failure) {
            let website = try website()
            let policy = try policy(website)
            let misfit = settings.misfit(of: website.name, under: policy)
            var plan = try plan(website.id)
            if misfit != nil { plan.keepDisabling() }
            guard allowsMany || !plan.exceeds(percent: directory.disableLimit) else { throw tooMany(plan) }
            var writing = DirectoryWriting(
                writes: DirectoryWrites(source: directory.name, website: website.id, run: run, at: time.now()),
                website: website.id, isVouched: policy.addresses == .vouched, keys: keys)
            var outcome = Outcome(plan: plan, conflicts: plan.conflicts)
            for start in stride(from: 0, to: plan.actions.count, by: Self.chunk) {
                guard !isStopped() else { throw Self.stopped }
                let actions = plan.actions[start..<min(start + Self.chunk, plan.actions.count)]
                let before = outcome.conflicts.count
                try write(Array(actions), &writing, &outcome)
                if outcome.conflicts.count > before {
                    guard try ask(DirectoryRuns.isStillNewest(directory.name, run)) else { throw overtaken }
                }
                progress?.show(start + actions.count, of: plan.actions.count, "changes made")
            }
            if let misfit { throw misfit }
            outcome.counts.conflicts = outcome.conflicts.count
            outcome.counts.users = plan.enabled + outcome.counts.added - outcome.counts.disabled + writing.enabled
            guard try ask(DirectoryRuns.end(directory.name, run, .success(outcome.counts), at: time.now())) else {
                throw overtaken
            }
            return outcome
        } catch {
            _ = try? ask(
                DirectoryRuns.end(directory.name, run, .failure(DirectoryFault(error.message)), at: time.now()))
            throw error
        }
    }

    /// The failure of a sync after which a newer one of the same source has begun.
    var overtaken: Failure {
        Failure(
            .conflict, "a newer sync of the directory \(directory.name) has begun",
            next: "This one changes nothing more. 'twoefay directory list' shows how the newer one ends.")
    }

    private static let stopped = Failure(
        .unavailable, "the relay stopped in the middle of the sync", next: "The next sync goes on.")
}

// MARK: Planning

extension DirectorySync {
    private func website() throws(Failure) -> Websites.Listed {
        guard let website = try ask(Websites.named(directory.website)) else {
            throw Failure(
                .notFound, "there is no website \(directory.website)",
                next: "Correct 'website' of the directory \(directory.name). 'twoefay website list' shows the websites."
            )
        }
        guard website.state == "active" else {
            throw Failure(
                .conflict, "the website \(directory.website) is disabled",
                next: "Nothing was changed. 'twoefay website enable' enables it.")
        }
        return website
    }

    private func policy(_ website: Websites.Listed) throws(Failure) -> Policy {
        do throws(Policy.Fault) {
            return try settings.policy.changed(by: website.traits.policy)
        } catch {
            throw Failure(
                .failed, "the policy of \(website.name): \(error.message)", next: "Correct it: 'twoefay website edit'.")
        }
    }

    private func plan(_ website: WebsiteID) throws(Failure) -> DirectoryPlan {
        let content = try settings.content(of: directory, time: time)
        guard !content.records.isEmpty else {
            // The message is also logged and stored, where no value of a user may appear.
            throw Failure(
                .failed,
                content.count == 0
                    ? "the source has no entries" : "none of the \(content.count) entries can be used",
                next: "Nothing was changed. 'twoefay directory test \(directory.name)' shows what the source returns.")
        }
        var owned: [DirectoryUser] = []
        while true {
            let page = try ask(DirectoryUsers.owned(by: directory.name, of: website, after: owned.last?.id ?? ""))
            owned += page
            progress?.show("\(owned.count) users of the store read")
            if page.count < DirectoryUsers.page { break }
        }
        let planner = DirectoryPlanner(
            source: directory.name, mapping: directory.mapping, adopts: directory.adopts,
            policies: directory.groups.map(\.policy), owned: owned)
        let wanted = planner.wanted(by: content)
        var holders: [DirectoryUser] = []
        for start in stride(from: 0, to: wanted.count, by: Self.chunk) {
            let records = Array(wanted[start..<min(start + Self.chunk, wanted.count)])
            holders += try ask(DirectoryUsers.holders(of: records, in: website))
            progress?.show(start + records.count, of: wanted.count, "entries compared")
        }
        return planner.plan(content, holders: holders)
    }

    private func tooMany(_ plan: DirectoryPlan) -> Failure {
        Failure(
            .conflict, plan.excess(over: directory.disableLimit),
            next: "Nothing was changed. Look at 'twoefay directory sync \(directory.name) --dry-run'; if it is right, "
                + "give --allow-many.")
    }
}

extension DirectoryPlan {
    /// The losses in words, with the limit that they exceed.
    public func excess(over percent: Int) -> String {
        "\(losses) of \(enabled) users would be disabled, or lose an address or the policy of a group, more than "
            + "disable_limit: \(percent) % allows"
    }
}

// MARK: Writing

extension DirectorySync {
    /// Makes some changes in one transaction. If a row is not genuine, only its own change is left
    /// out.
    private func write(
        _ actions: [DirectoryPlan.Action], _ writing: inout DirectoryWriting, _ outcome: inout Outcome
    ) throws(Failure) {
        var changes: [Query<Bool>] = []
        for action in actions { changes.append(try writing.change(action)) }
        do throws(StoreFailure) {
            for (action, isDone) in zip(actions, try store.runBlocking(changes)) {
                writing.count(action, isDone ? nil : Self.changedMeanwhile, &outcome)
            }
        } catch {
            guard case .forged = error else { throw Failure(store: error) }
            // A change that was made already is found by its operation, and counts as done.
            for (action, change) in zip(actions, changes) {
                do throws(StoreFailure) {
                    let isDone = try store.runBlocking(change)
                    writing.count(action, isDone ? nil : Self.changedMeanwhile, &outcome)
                } catch {
                    guard case .forged(let row) = error else { throw Failure(store: error) }
                    writing.count(action, "the row \(row) is not genuine; 'twoefay rows verify' explains", &outcome)
                }
            }
        }
    }

    private static let changedMeanwhile = "was changed in the meantime; the next sync goes on"

    @discardableResult private func ask<Answer>(_ query: Query<Answer>) throws(Failure) -> Answer {
        do throws(StoreFailure) {
            return try store.runBlocking(query)
        } catch {
            throw Failure(store: error)
        }
    }
}
