extension SyscallFilter {
    /// The calls that are allowed with any arguments, grouped by purpose.
    static let allowed = files + memory + threads + time + network + itself

    private static let files = [
        "access", "close", "close_range", "creat", "dup", "dup2", "dup3", "faccessat", "faccessat2", "fadvise64",
        "fallocate", "fchmod", "fchown", "fcntl", "fcntl64", "fdatasync", "flock", "fstat", "fstat64", "fstatat64",
        "fstatfs", "fstatfs64", "fsync", "ftruncate", "ftruncate64", "getcwd", "getdents", "getdents64", "lseek",
        "_llseek", "lstat", "memfd_create", "newfstatat", "open", "openat", "openat2", "pipe", "pipe2", "pread64",
        "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2", "read", "readahead", "readlink", "readlinkat", "readv",
        "sendfile", "stat", "stat64", "statfs", "statfs64", "statx", "sync_file_range", "umask", "unlink", "unlinkat",
        "utimensat", "write", "writev",
    ]

    /// The calls for memory. `mmap` and `mprotect` depend on their arguments and are not in this
    /// list.
    private static let memory = [
        "brk", "madvise", "mincore", "mlock", "mlock2", "mremap", "mseal", "msync", "munlock", "munmap",
    ]

    /// The calls for threads and signals. `clone` depends on its arguments and is not in this list;
    /// the other filter answers `clone3` with ENOSYS.
    private static let threads = [
        "clone3", "exit", "exit_group", "futex", "futex_requeue", "futex_wait", "futex_waitv", "futex_wake",
        "get_robust_list", "getcpu", "gettid", "membarrier", "restart_syscall", "rseq", "rt_sigaction", "rt_sigpending",
        "rt_sigprocmask",
        "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "sched_getaffinity", "sched_getattr", "sched_getparam",
        "sched_get_priority_max", "sched_get_priority_min", "sched_getscheduler", "sched_yield", "set_robust_list",
        "set_tid_address", "sigaltstack", "signalfd", "signalfd4",
    ]

    private static let time = [
        "clock_getres", "clock_gettime", "clock_nanosleep", "gettimeofday", "nanosleep", "time", "timerfd_create",
        "timerfd_gettime", "timerfd_settime", "times",
    ]

    /// The calls for sockets and waiting. `socket` and `socketpair` depend on their arguments and
    /// are not in this list.
    private static let network = [
        "accept", "accept4", "bind", "connect", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait",
        "epoll_pwait2", "epoll_wait", "eventfd", "eventfd2", "getpeername", "getsockname", "getsockopt", "listen",
        "poll", "ppoll", "pselect6", "recvfrom", "recvmmsg", "recvmsg", "select", "sendmmsg", "sendmsg", "sendto",
        "setsockopt", "shutdown",
    ]

    private static let itself = [
        "arch_prctl", "getegid", "geteuid", "getgid", "getgroups", "getpid", "getppid", "getrandom", "getresgid",
        "getresuid", "getrlimit", "getrusage", "getuid", "setrlimit", "sysinfo", "uname",
    ]

    /// The calls that end the process. No library tries them, so only an attacker does.
    static let deadly = [
        // These calls start another program, or access another process's memory.
        "execve", "execveat", "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd",
        // These calls change the kernel or the machine.
        "acct", "add_key", "bpf", "clock_settime", "create_module", "delete_module", "finit_module", "init_module",
        "io_uring_enter", "io_uring_register", "io_uring_setup", "ioperm", "iopl", "kcmp", "kexec_file_load",
        "kexec_load", "keyctl", "lookup_dcookie", "perf_event_open", "quotactl", "reboot", "request_key",
        "settimeofday",
        "swapoff", "swapon", "syslog", "userfaultfd",
        // These calls change the view of the file system, or enter other namespaces.
        "chroot", "fsconfig", "fsmount", "fsopen", "fspick", "mount", "mount_setattr", "move_mount",
        "open_by_handle_at", "open_tree", "pivot_root", "setns", "umount", "umount2", "unshare",
    ]
}
