extension StringProtocol {
    /// Whether the two texts have the same UTF-8 bytes.
    ///
    /// `==` of `String` also treats different bytes as equal if they are canonically equivalent in
    /// Unicode. A receipt must match exactly what the website sent, so the check compares bytes.
    func isExactly(_ other: some StringProtocol) -> Bool { utf8.elementsEqual(other.utf8) }
}

extension String? {
    /// Whether both are nil, or both are texts with the same UTF-8 bytes.
    func isExactly(_ other: String?) -> Bool {
        switch (self, other) {
        case (nil, nil): true
        case (let one?, let other?): one.isExactly(other)
        default: false
        }
    }
}
