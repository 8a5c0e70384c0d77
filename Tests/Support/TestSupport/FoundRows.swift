import Storage

extension [Rows] {
    /// The first row of that read: a store that found nothing fails one test, and does not end them all.
    public func row(_ read: Int) throws -> Row {
        guard indices.contains(read), let row = self[read].first else {
            throw Child.Problem(description: "read \(read) of \(count) found no row")
        }
        return row
    }
}
