import Domain

/// The problems of a route under one status.
struct StatusProblems {
    let status: Int
    let codes: [Problem.Code]
    /// The texts that the route declares about them. Those that follow from the kind of the route have none.
    let texts: [(code: Problem.Code, text: String)]
}

extension Route {
    /// All problems that the route can answer with, by status.
    var problems: [StatusProblems] {
        let declared = forms.flatMap { Array($0.problems) }
        let codes = usualProblems.union(declared.map { $0.key })
        let statuses = Set(codes.map(\.status)).sorted()
        return statuses.map { status in
            StatusProblems(
                status: status, codes: Problem.Code.allCases.filter { $0.status == status && codes.contains($0) },
                texts: declared.filter { $0.key.status == status }.map { ($0.key, $0.value) })
        }
    }

    /// The problems that follow from the kind of the route. `method_not_allowed` is not among them,
    /// because it is the answer to a method without an operation.
    private var usualProblems: Set<Problem.Code> {
        var codes: Set<Problem.Code> = [.malformed, .tooLarge, .limited, .internal, .unavailable]
        if method == "POST" || method == "PATCH" { codes.insert(.unsupportedType) }
        if takesKeys { codes.formUnion([.conflict, .idempotencyMismatch]) }
        if forms.contains(where: { !$0.isForAnyone }) { codes.formUnion([.unauthenticated, .forbidden]) }
        if path.hasParameters { codes.formUnion([.notFound, .routeNotFound]) }
        // The header field `username` must not contradict the path.
        if takesKeys || forms.contains(where: { !$0.parameters.isEmpty }) || path.names.contains("username") {
            codes.insert(.invalid)
        }
        return codes
    }

    /// Whether websites may send an `Idempotency-Key`.
    var takesKeys: Bool {
        method == "POST" && forms.contains { if case .website = $0.action { !$0.isSafe } else { false } }
    }
}
