/// The demand on the kernel: the setting `hardening`.
public enum HardeningLevel: String, Sendable, CaseIterable {
    /// The daemon does not start unless every measure is in force.
    case required
    /// The daemon uses every measure that the kernel has, and logs a warning for each missing one.
    case on
    /// No measure is used.
    case off
}

/// The restrictions that a process puts on itself before it listens, and the result of each.
///
/// Purpose: if an attacker takes over the process, the kernel still refuses files outside the rules
/// and system calls outside the filter. The restrictions last until the process ends.
///
/// Invariant: `apply` runs on the first thread, before any other thread starts. Landlock restricts
/// the calling thread and the threads that it starts, and no others.
///
/// Failure modes: the kernel may lack a measure. Each measure is applied by itself; a missing one
/// is recorded in `missing` with its reason, and `HardeningLevel` decides whether the daemon
/// starts. `KernelTests.swift` tests this with kernels that lack a measure,
/// `FaultsTests/HardeningTests.swift` tests the built daemon.
public struct Hardening: Sendable, Equatable {
    public enum Measure: String, Sendable, CaseIterable {
        /// Files outside the rules cannot be opened.
        case landlock
        /// System calls outside the filter are refused.
        case seccomp
    }

    /// The measures that are not in force, each with the reason.
    public let missing: [Measure: String]
    /// The rules for files; nil if files are not restricted.
    public let rules: LandlockRules?

    /// Returns the measures that `apply` would find missing. Queries the kernel and changes
    /// nothing.
    public static func missing(in kernel: some HardeningKernel) -> [Measure: String] {
        var missing: [Measure: String] = [:]
        if kernel.landlockVersion == nil {
            missing[.landlock] = "the kernel has no Landlock (Linux 5.13, lsm=landlock)"
        }
        missing[.seccomp] = kernel.filterShortcoming
        return missing
    }

    /// Restricts this process for good. Must be called on its first thread, before any other
    /// starts: Landlock applies to the calling thread and to the threads that it starts.
    public static func apply(
        _ rules: LandlockRules, _ filter: SyscallFilter = .relay, on kernel: some HardeningKernel = SystemKernel()
    ) -> Hardening {
        var missing = missing(in: kernel)
        // The files come first, because the filter allows none of Landlock's system calls.
        if missing[.landlock] == nil {
            do throws(HardeningFault) {
                try kernel.restrictFiles(rules)
            } catch {
                missing[.landlock] = error.description
            }
        }
        if missing[.seccomp] == nil {
            do throws(HardeningFault) {
                try kernel.install(filter)
            } catch {
                missing[.seccomp] = error.description
            }
        }
        return Hardening(missing: missing, rules: missing[.landlock] == nil ? rules : nil)
    }
}
