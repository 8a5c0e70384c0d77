/// The statements of a batch, with the same reads of several requests in one execution
/// (`GatheredStatement`).
///
/// Reads of a snapshot may change places. In a transaction that writes, only those of short forms may:
/// rows are locked in the order in which scripts name them.
///
/// `GatheredReadsTests.swift` tests it.
struct GatheredReads {
    /// The executions.
    private(set) var steps: [BoundStatement] = []
    /// For each statement its execution, and its place in a form.
    private var places: [(execution: Int, request: Int)] = []
    /// The form of each execution; nil for a statement that is executed alone.
    private var forms: [Form?] = []

    private struct Form {
        let form: GatheredForm
        /// For each request the values at the end of its rows.
        let keys: [[SQLValue]]
    }

    /// Requests that may have one execution: the same statement, with the same common values.
    private struct Kind: Hashable {
        let statement: Int
        let common: [SQLValue]
    }

    /// The statements of one execution, as indices, and what tells their rows apart.
    private struct Group {
        var members: [Int] = []
        var keys: [[SQLValue]] = []
    }

    /// - Parameter moveAll: whether all statements may change places. Otherwise only those may whose
    ///   `mayMove` is set, and they stay between the neighbours that may not.
    init(_ all: [BoundStatement], moveAll: Bool) {
        places = Array(repeating: (0, 0), count: all.count)
        var open = OpenGroups()
        for (index, step) in all.enumerated() {
            guard moveAll || step.mayMove else {
                for group in open.removeAll() { add(group, of: all) }
                add(Group(members: [index]), of: all)
                continue
            }
            guard let gathered = step.statement.gathered else {
                open.others.append(Group(members: [index]))
                continue
            }
            let kind = Kind(statement: step.statement.index, common: gathered.common(of: step.values))
            open.add(index, gathered.key(of: step.values), kind)
        }
        for group in open.removeAll() { add(group, of: all) }
    }

    /// The groups of statements that may change places.
    private struct OpenGroups {
        private var groups: [Kind: [Group]] = [:]
        /// The kinds in the order of their first statements.
        private var kinds: [Kind] = []
        /// The statements that are executed alone.
        var others: [Group] = []

        /// Adds a statement to the last group of its kind. It begins another one if that one is full,
        /// or has a statement with the same key: their rows could not be told apart.
        mutating func add(_ index: Int, _ key: [SQLValue], _ kind: Kind) {
            if groups[kind] == nil { kinds.append(kind) }
            let last = groups[kind]?.last
            let isRoom = last.map { $0.members.count < GatheredStatement.most && !$0.keys.contains(key) } ?? false
            if !isRoom { groups[kind, default: []].append(Group()) }
            let place = groups[kind, default: []].count - 1
            groups[kind]?[place].members.append(index)
            groups[kind]?[place].keys.append(key)
        }

        /// Returns the groups in the order in which they run. The rows of short forms are locked before
        /// what is read alone counts them.
        mutating func removeAll() -> [Group] {
            defer { self = OpenGroups() }
            return kinds.flatMap { groups[$0] ?? [] } + others
        }
    }

    private mutating func add(_ group: Group, of all: [BoundStatement]) {
        for (request, member) in group.members.enumerated() { places[member] = (steps.count, request) }
        let first = all[group.members[0]]
        guard group.members.count > 1, let form = first.statement.gathered?.form(for: group.members.count) else {
            steps.append(first)
            forms.append(nil)
            return
        }
        steps.append(form.bound(group.members.map { all[$0].values }))
        forms.append(Form(form: form, keys: group.keys))
    }

    /// Returns the result of each statement, from those of `steps`.
    func answers(_ results: ArraySlice<Rows>) throws(SessionFailure) -> [Rows] {
        var parts: [[Rows]] = []
        parts.reserveCapacity(results.count)
        for (rows, form) in zip(results, forms) {
            parts.append(
                try form.map { form throws(SessionFailure) in try form.form.parts(of: rows, form.keys) } ?? [rows])
        }
        return places.map { parts[$0.execution][$0.request] }
    }
}
