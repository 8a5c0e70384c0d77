import Glibc

/// The machine that the daemon finds itself on.
enum Machine {
    static var cores: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }
}
