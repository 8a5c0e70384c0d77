import CLinux

/// Decides when the memory of ended connections is given back to the system: after their number has
/// fallen to half of its peak, and by some hundred. It costs milliseconds, so it is not done for
/// less.
struct MemoryTrimmer {
    static let fewest = 256

    private var peak = 0

    mutating func grown(to count: Int) { peak = max(peak, count) }

    /// True once after each large fall.
    mutating func shrunk(to count: Int) -> Bool {
        guard peak - count >= Self.fewest, count * 2 <= peak else { return false }
        peak = count
        return true
    }

    static func run() { clinux_return_memory() }
}
