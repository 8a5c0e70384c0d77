import Glibc

/// Properties of the machine, and the immediate end of the process.
enum Machine {
    static var cores: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    /// Ends the process at once with `_exit`; no cleanup runs.
    static func exit(_ code: ExitCode) { _exit(code.rawValue) }
}
