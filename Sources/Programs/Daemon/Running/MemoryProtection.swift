import Bytes
import Crypto
import Hardening
import Log

/// The protection of keys in memory: no core dumps, and pages that are not swapped.
struct MemoryProtection: Sendable {
    let refusesDumps: Bool
    let keys: KeyMemory.State

    /// Turns the protection on. Must be called before any key is read and before any other thread
    /// starts.
    static func begin() -> MemoryProtection {
        MemoryProtection(refusesDumps: CoreDumps.refuse(), keys: KeyMemory.prepare())
    }

    /// The missing measures, each as a sentence.
    var shortcomings: [String] {
        var missing: [String] = []
        if !refusesDumps { missing.append("the system refuses to disable core dumps of this process") }
        if keys != .locked || LockedMemory.shared.usage.unlocked > 0 {
            missing.append(
                "keys may be swapped: the limit of locked memory (RLIMIT_MEMLOCK, LimitMEMLOCK= of systemd) is below 4 MiB"
            )
        }
        return missing
    }

    func report(to log: Log) {
        for reason in shortcomings { log.warning("hardening.memory", [.reason: reason]) }
    }
}
