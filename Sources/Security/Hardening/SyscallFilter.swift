import CLinux
import CSeccomp
import Glibc

/// The system calls that the daemon may make: a list of what Swift's runtime, glibc, OpenSSL,
/// SQLite, libmariadb and libcurl need. Everything else is refused with EPERM and reported by the
/// kernel's audit (`type=1326`), since a library that tries something new has to find an error
/// rather than the end of the process. Calls of attackers alone, to run another program or to reach
/// into the kernel, end the process at once.
///
/// A call that is allowed whatever its arguments are costs the kernel a look into a bitmap (since Linux 5.11).
public struct SyscallFilter: Sendable {
    /// The filter of the relay.
    public static let relay = SyscallFilter()

    private struct Argument {
        let index: UInt32
        let comparison: scmp_compare
        let first: UInt64
        let second: UInt64

        static func equals(_ index: UInt32, _ value: UInt64) -> Argument {
            Argument(index: index, comparison: SCMP_CMP_EQ, first: value, second: 0)
        }

        static func equals(_ index: UInt32, _ value: UInt64, under mask: UInt64) -> Argument {
            Argument(index: index, comparison: SCMP_CMP_MASKED_EQ, first: mask, second: value)
        }

        var c: scmp_arg_cmp { scmp_arg_cmp(arg: index, op: comparison, datum_a: first, datum_b: second) }
    }

    /// Installs the filter on all threads, for good.
    func install() throws(HardeningFault) {
        // glibc makes threads by `clone3`, whose flags lie in memory where no filter can read them;
        // told that there is no such call it uses `clone`. A filter of its own, since refusals of
        // the other one are reported.
        try Self.load(otherwise: cseccomp_allow, isReported: false) { context throws(HardeningFault) in
            try Self.add("clone3", cseccomp_refuse(UInt16(ENOSYS)), [], to: context)
        }
        try Self.load(otherwise: cseccomp_refuse(UInt16(EPERM)), isReported: true) { context throws(HardeningFault) in
            for name in Self.allowed { try Self.add(name, cseccomp_allow, [], to: context) }
            for name in Self.deadly { try Self.add(name, cseccomp_kill, [], to: context) }
            for (name, arguments) in Self.conditional { try Self.add(name, cseccomp_allow, arguments, to: context) }
        }
    }

    private static func load(
        otherwise action: UInt32, isReported: Bool, rules: (scmp_filter_ctx) throws(HardeningFault) -> Void
    ) throws(HardeningFault) {
        guard let context = seccomp_init(action) else { throw HardeningFault("seccomp", errno: ENOMEM) }
        defer { seccomp_release(context) }
        try rules(context)
        seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, cseccomp_kill)
        // Older kernels lack these three, and the filter holds all the same.
        seccomp_attr_set(context, SCMP_FLTATR_CTL_TSYNC, 1)
        seccomp_attr_set(context, SCMP_FLTATR_CTL_LOG, isReported ? 1 : 0)
        seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2)
        let status = seccomp_load(context)
        guard status == 0 else { throw HardeningFault("seccomp", errno: -status) }
    }

    /// A call that this architecture or this libseccomp does not know is left out: the filter refuses it.
    private static func add(
        _ name: String, _ action: UInt32, _ arguments: [Argument], to context: scmp_filter_ctx
    ) throws(HardeningFault) {
        let number = seccomp_syscall_resolve_name(name)
        guard number != __NR_SCMP_ERROR else { return }
        let status = seccomp_rule_add_array(context, action, number, UInt32(arguments.count), arguments.map(\.c))
        guard status == 0 else { throw HardeningFault("seccomp, \(name)", errno: -status) }
    }

    /// Calls that depend on their arguments; several lines for one call are alternatives.
    private static var conditional: [(String, [Argument])] {
        let executable = UInt64(PROT_WRITE | PROT_EXEC)
        var rules: [(String, [Argument])] = [
            // Threads, and no processes.
            ("clone", [.equals(0, UInt64(CLONE_THREAD), under: UInt64(CLONE_THREAD))]),
            // Signals to itself (abort), and to nobody else.
            ("tgkill", [.equals(0, UInt64(getpid()))]),
            // Its own limits.
            ("prlimit64", [.equals(0, 0)]), ("prlimit64", [.equals(0, UInt64(getpid()))]),
        ]
        // Memory is written or executed, never both: the resolver loads libraries, and nothing here makes code.
        for call in ["mmap", "mprotect"] {
            for allowed in [0, UInt64(PROT_WRITE), UInt64(PROT_EXEC)] {
                rules.append((call, [.equals(2, allowed, under: executable)]))
            }
        }
        for option in [PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_GET_NO_NEW_PRIVS, PR_GET_SECCOMP] {
            rules.append(("prctl", [.equals(0, UInt64(option))]))
        }
        for family in [AF_UNIX, AF_INET, AF_INET6] {
            for type in [SOCK_STREAM, SOCK_DGRAM] {
                rules.append(
                    ("socket", [.equals(0, UInt64(family)), .equals(1, UInt64(type.rawValue), under: 0xf)]))
            }
        }
        // The addresses of this machine, by which the resolver sorts and the relay knows what is inside.
        rules.append(("socket", [.equals(0, UInt64(AF_NETLINK)), .equals(2, 0)]))
        rules.append(("socketpair", [.equals(0, UInt64(AF_UNIX))]))
        // The last three are FIOCLEX, SIOCGIFNAME and SIOCGIFINDEX.
        for request in [UInt64(FIONBIO), UInt64(FIONREAD), UInt64(TCGETS), 0x5451, 0x8910, 0x8933] {
            rules.append(("ioctl", [.equals(1, request)]))
        }
        return rules
    }
}
