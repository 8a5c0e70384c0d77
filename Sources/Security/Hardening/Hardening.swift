/// The demand on the kernel: `hardening` in the settings.
public enum HardeningLevel: String, Sendable, CaseIterable {
    /// Everything, or the daemon does not start.
    case required
    /// Everything that the kernel has; what it lacks is warned of.
    case on
    case off
}

/// The restrictions that a process puts on itself before it listens, and what became of each.
public struct Hardening: Sendable, Equatable {
    public enum Measure: String, Sendable, CaseIterable {
        /// Files outside the rules cannot be opened.
        case landlock
        /// System calls outside the filter are refused.
        case seccomp
    }

    /// Measures that are not in force, and why.
    public let missing: [Measure: String]
    /// The rules for files; nil if files are not restricted.
    public let rules: LandlockRules?

    /// Asks the kernel and changes nothing: what `apply` would find missing.
    public static func missing(in kernel: some HardeningKernel) -> [Measure: String] {
        var missing: [Measure: String] = [:]
        if kernel.landlockVersion == nil {
            missing[.landlock] = "the kernel has no Landlock (Linux 5.13, lsm=landlock)"
        }
        missing[.seccomp] = kernel.filterShortcoming
        return missing
    }

    /// Restricts this process for good. To be called on its first thread, before any other begins:
    /// Landlock holds for the calling thread and those that it starts.
    public static func apply(
        _ rules: LandlockRules, _ filter: SyscallFilter = .relay, on kernel: some HardeningKernel = SystemKernel()
    ) -> Hardening {
        var missing = missing(in: kernel)
        // Files first: the filter knows none of Landlock's calls.
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
