import Glibc

/// The machine that the daemon finds itself on.
enum Machine {
    static var cores: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    /// The process, here and now, whatever runs in it.
    static func exit(_ code: ExitCode) { _exit(code.rawValue) }
}
