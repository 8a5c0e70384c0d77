import CLinux

/// Decides when to return the memory of ended connections to the system: when their number has
/// fallen by at least `fewest`, and to half of its peak. Trimming takes milliseconds, so smaller
/// falls do not trigger it.
struct MemoryTrimmer {
    static let fewest = 256

    private var peak = 0

    mutating func grown(to count: Int) { peak = max(peak, count) }

    /// Returns true once after each large fall.
    mutating func shrunk(to count: Int) -> Bool {
        guard peak - count >= Self.fewest, count * 2 <= peak else { return false }
        peak = count
        return true
    }

    static func run() { clinux_return_memory() }
}
