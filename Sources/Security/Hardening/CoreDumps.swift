import CLinux
import Glibc

/// Core dumps and debuggers, which would copy the keys of the process.
public enum CoreDumps {
    /// Disables core dumps of this process for good, and lets only root attach to it or read its
    /// memory.
    ///
    /// `/proc/PID/status`, `stat`, `statm` and `cmdline` stay readable for every user, `environ`
    /// and `fd` only for root. Returns false if the system refuses. Tested in
    /// `CoreDumpTests.swift`.
    public static func refuse() -> Bool {
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        let isLimited = setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none) == 0
        // The limit does not apply to dumps that are piped to a program (`|` in core_pattern); this
        // flag does.
        return clinux_prctl(PR_SET_DUMPABLE, 0) == 0 && isLimited
    }
}
