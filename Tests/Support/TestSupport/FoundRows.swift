import Storage

extension [Rows] {
    /// Returns the first row of a read. If there is none, it throws, so only one test fails and the
    /// test process continues.
    public func row(_ read: Int) throws -> Row {
        guard indices.contains(read), let row = self[read].first else {
            throw Child.Problem(description: "read \(read) of \(count) found no row")
        }
        return row
    }
}
