/// Returns a number with its noun, such as `1 phone` or `2 phones`.
public func counted(_ count: some BinaryInteger, _ noun: String) -> String {
    "\(count) \(noun)\(count == 1 ? "" : "s")"
}
