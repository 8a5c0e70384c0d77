import CLinux
import Glibc

/// A program that this one starts as a child process.
package struct Spawning {
    package enum Output {
        case ours
        case nothing
        case descriptor(Int32)
    }

    private let program: String
    private let arguments: [String]
    private let input: Int32?
    private let output: Output
    private let errors: Int32?
    private let further: Int32?
    private let directory: String?
    private let environment: [String]
    private let hasOwnGroup: Bool

    /// Describes a program.
    ///
    /// - Parameters:
    ///   - program: a path, or a name that is looked up in PATH.
    ///   - input: the descriptor of its standard input; nil for /dev/null.
    ///   - errors: the descriptor of its standard error; nil for that of this process.
    ///   - further: the descriptor that it inherits as 3, `/dev/fd/3`; nil for none.
    ///   - directory: its working directory; nil for that of this process.
    ///   - environment: its variables as `NAME=value`; nil for those of this process.
    ///   - hasOwnGroup: whether it gets its own process group. Ctrl-C at the terminal then reaches
    ///     only this process, which ends its children in order.
    package init(
        program: String, arguments: [String], input: Int32? = nil, output: Output = .ours, errors: Int32? = nil,
        further: Int32? = nil, directory: String? = nil, environment: [String]? = nil, hasOwnGroup: Bool = true
    ) {
        self.program = program
        self.arguments = arguments
        self.input = input
        self.output = output
        self.errors = errors
        self.further = further
        self.directory = directory
        self.environment = environment ?? Self.ourEnvironment
        self.hasOwnGroup = hasOwnGroup
    }

    package func start() throws(SystemFailure) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let input {
            posix_spawn_file_actions_adddup2(&actions, input, 0)
        } else {
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        }
        switch output {
        case .ours: break
        case .nothing: posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        case .descriptor(let output): posix_spawn_file_actions_adddup2(&actions, output, 1)
        }
        if let errors { posix_spawn_file_actions_adddup2(&actions, errors, 2) }
        if let further { posix_spawn_file_actions_adddup2(&actions, further, 3) }
        // Other descriptors are not inherited. Otherwise a connection that this process closes would stay
        // open in the child.
        posix_spawn_file_actions_addclosefrom_np(&actions, further == nil ? 3 : 4)
        if let directory { posix_spawn_file_actions_addchdir_np(&actions, directory) }

        // Signals that this process blocks or ignores must have their default effect in the child.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        var all = sigset_t()
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setpgroup(&attributes, 0)
        let flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (hasOwnGroup ? POSIX_SPAWN_SETPGROUP : 0)
        posix_spawnattr_setflags(&attributes, Int16(flags))

        let words = Self.strings([program] + arguments)
        let variables = Self.strings(environment)
        defer { for string in words + variables { free(string) } }
        var pid: pid_t = 0
        let code = posix_spawnp(&pid, program, &actions, &attributes, words, variables)
        guard code == 0 else { throw SystemFailure("posix_spawn", code) }
        return pid
    }

    package static var ourEnvironment: [String] {
        var variables: [String] = []
        var next = clinux_environment()
        while let place = next, let text = place.pointee {
            variables.append(String(cString: text))
            next = place + 1
        }
        return variables
    }

    private static func strings(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] {
        texts.map { strdup($0) } + [nil]
    }
}
