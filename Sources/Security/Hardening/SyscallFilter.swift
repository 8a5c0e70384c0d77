import CLinux
import CSeccomp
import Glibc

/// The system calls that the daemon may make, enforced by the kernel with seccomp.
///
/// Purpose: code of an attacker in this process cannot start a program, and cannot use kernel
/// interfaces that the daemon never uses. The allowed calls are those that Swift's runtime, glibc,
/// OpenSSL, SQLite, libmariadb and libcurl need.
///
/// Invariant: every call is in one of three groups. An allowed call runs, in some cases only with
/// certain arguments. A deadly call, which only an attacker makes, ends the process at once. Every
/// other call fails with EPERM, and the kernel's audit reports it (`type=1326`). The only exception
/// is `clone3`, which fails with ENOSYS so that glibc uses `clone`.
///
/// Failure modes: a new version of a library may try a new call. It gets an error that it can
/// handle, and the process continues. The audit shows the call to add. A sanitizer starts
/// processes, so a program with one is not filtered.
///
/// A call that is allowed with any arguments costs the kernel one lookup in a bitmap (since Linux
/// 5.11). `FilterTests.swift` tests all three groups, `FaultsTests/HardeningTests.swift` all
/// threads of the built daemon.
public struct SyscallFilter: Sendable {
    /// The filter of the relay and of the key process.
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
        // glibc starts threads by `clone3`, whose flags are in memory that no filter can read. If
        // the call fails with ENOSYS, glibc uses `clone` instead. This is a separate filter,
        // because the refusals of the other filter are reported.
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
        // Older kernels may lack these three attributes. The filter works without them.
        seccomp_attr_set(context, SCMP_FLTATR_CTL_TSYNC, 1)
        seccomp_attr_set(context, SCMP_FLTATR_CTL_LOG, isReported ? 1 : 0)
        seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2)
        let status = seccomp_load(context)
        guard status == 0 else { throw HardeningFault("seccomp", errno: -status) }
    }

    /// Adds a rule. A call that this architecture or this libseccomp does not know is left out; the
    /// filter refuses it.
    private static func add(
        _ name: String, _ action: UInt32, _ arguments: [Argument], to context: scmp_filter_ctx
    ) throws(HardeningFault) {
        let number = seccomp_syscall_resolve_name(name)
        guard number != __NR_SCMP_ERROR else { return }
        let status = seccomp_rule_add_array(context, action, number, UInt32(arguments.count), arguments.map(\.c))
        guard status == 0 else { throw HardeningFault("seccomp, \(name)", errno: -status) }
    }

    /// The calls that are allowed with certain arguments. Several entries for one call are
    /// alternatives.
    private static var conditional: [(String, [Argument])] {
        let executable = UInt64(PROT_WRITE | PROT_EXEC)
        var rules: [(String, [Argument])] = [
            // The call may start threads, but no processes.
            ("clone", [.equals(0, UInt64(CLONE_THREAD), under: UInt64(CLONE_THREAD))]),
            // The process may signal itself (abort), and no other process.
            ("tgkill", [.equals(0, UInt64(getpid()))]),
            // The process may read and change its own limits.
            ("prlimit64", [.equals(0, 0)]), ("prlimit64", [.equals(0, UInt64(getpid()))]),
        ]
        // A reload changes the mode of the control socket. Not every architecture has the first call.
        for mode in [UInt64(0o600), UInt64(0o666)] {
            rules += [("chmod", [.equals(1, mode)]), ("fchmodat", [.equals(2, mode)])]
        }
        // Memory is writable or executable, never both. The resolver loads libraries, and nothing
        // here generates code.
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
        // Netlink gives the addresses of this machine. The resolver sorts by them, and the relay
        // finds out which addresses are internal.
        rules.append(("socket", [.equals(0, UInt64(AF_NETLINK)), .equals(2, 0)]))
        rules.append(("socketpair", [.equals(0, UInt64(AF_UNIX))]))
        // The last three are FIOCLEX, SIOCGIFNAME and SIOCGIFINDEX.
        for request in [UInt64(FIONBIO), UInt64(FIONREAD), UInt64(TCGETS), 0x5451, 0x8910, 0x8933] {
            rules.append(("ioctl", [.equals(1, request)]))
        }
        return rules
    }
}
