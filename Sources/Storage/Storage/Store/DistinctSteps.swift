/// The statements of a transaction that only reads, each once.
///
/// Requests that wait together often read the same, such as their website. In one transaction the
/// same statement with the same values has the same result.
///
/// `DistinctStepsTests.swift` tests it.
struct DistinctSteps {
    /// A statement and its values, as they are compared.
    private struct Question: Hashable {
        let statement: Int
        let values: [SQLValue]
    }

    private(set) var distinct: [BoundStatement] = []
    /// The place of each statement's result among those of `distinct`.
    private var places: [Int] = []

    init(_ steps: [BoundStatement]) {
        var known: [Question: Int] = [:]
        for step in steps {
            let question = Question(statement: step.statement.index, values: step.values)
            if let place = known[question] {
                places.append(place)
            } else {
                known[question] = distinct.count
                places.append(distinct.count)
                distinct.append(step)
            }
        }
    }

    /// Returns the result of each statement, from those of `distinct`.
    func answers<Result>(_ results: ArraySlice<Result>) -> [Result] { places.map { results[results.startIndex + $0] } }
}
