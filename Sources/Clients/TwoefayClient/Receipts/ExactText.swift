extension StringProtocol {
    /// Byte for byte. Swift's own == takes texts for equal that only look so: what was sent and what was shown must be one.
    func isExactly(_ other: some StringProtocol) -> Bool { utf8.elementsEqual(other.utf8) }
}

extension String? {
    func isExactly(_ other: String?) -> Bool {
        switch (self, other) {
        case (nil, nil): true
        case (let one?, let other?): one.isExactly(other)
        default: false
        }
    }
}
