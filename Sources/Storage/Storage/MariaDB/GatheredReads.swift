/// The statements of a batch, with the same reads of several requests in one execution
/// (`GatheredStatement`). Reads between two writes may change places.
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
        /// For each request the values that its rows begin with in the columns of the form's keys.
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

    init(_ all: [BoundStatement]) {
        places = Array(repeating: (0, 0), count: all.count)
        var open = OpenGroups()
        for (index, step) in all.enumerated() {
            if let gathered = step.statement.gathered {
                let key = gathered.key(of: step.values)
                let kind = Kind(statement: step.statement.index, common: gathered.common(of: step.values))
                if let full = open.add(index, key, kind) { add(full, of: all) }
                continue
            }
            // What reads before a write must not run after it.
            if !step.statement.isRead { for group in open.removeAll() { add(group, of: all) } }
            add(Group(members: [index]), of: all)
        }
        for group in open.removeAll() { add(group, of: all) }
    }

    /// The groups that further statements may join.
    private struct OpenGroups {
        private var groups: [Kind: Group] = [:]
        /// The kinds in the order of their first statements. Rows are locked in the order of the scripts.
        private var kinds: [Kind] = []

        /// Adds a statement to the group of its kind. Returns the former group if that one is full, or
        /// has a statement with the same key: their rows could not be told apart.
        mutating func add(_ index: Int, _ key: [SQLValue], _ kind: Kind) -> Group? {
            let former = groups[kind]
            guard let group = former, group.members.count < GatheredStatement.most, !group.keys.contains(key) else {
                if former == nil { kinds.append(kind) }
                groups[kind] = Group(members: [index], keys: [key])
                return former
            }
            groups[kind]?.members.append(index)
            groups[kind]?.keys.append(key)
            return nil
        }

        mutating func removeAll() -> [Group] {
            defer { self = OpenGroups() }
            return kinds.compactMap { groups[$0] }
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
