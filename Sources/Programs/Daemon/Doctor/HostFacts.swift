import Glibc
import Hardening
import World

/// The facts about this machine that `twoefay doctor` judges. Tests give others.
struct HostFacts: Sendable {
    /// The space of a file system.
    struct Space: Sendable {
        let free: Int64
        let all: Int64
        /// The share of inodes that is free, from 0 to 1.
        let freeInodes: Double
    }

    /// The limits of open files of this process: the soft and the hard one.
    var descriptors: @Sendable () -> (soft: Int, hard: Int)
    /// Returns the space of the file system that holds a path; nil if the path does not exist.
    var space: @Sendable (String) -> Space?
    /// Whether the kernel says that something keeps its clock in time.
    var isClockSynchronised: @Sendable () -> Bool
    /// Whether the kernel has random bytes without waiting.
    var hasRandomness: @Sendable () -> Bool
    /// Returns the properties of a unit of systemd; nil if systemd does not run here.
    var unit: @Sendable (String) -> [String: String]?
    var kernel: any HardeningKernel
    var time: any TimeSource
    /// Returns the account of the relay; nil if nothing tells it.
    var relayAccount: @Sendable (Settings) -> RelayAccount?

    static let system = HostFacts(
        descriptors: {
            var limit = rlimit()
            guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return (0, 0) }
            return (Int(clamping: limit.rlim_cur), Int(clamping: limit.rlim_max))
        },
        space: { path in
            var state = statvfs()
            guard statvfs(path, &state) == 0 else { return nil }
            let block = Int64(clamping: state.f_frsize)
            return Space(
                free: Int64(clamping: state.f_bavail) * block, all: Int64(clamping: state.f_blocks) * block,
                // Some file systems have no fixed number of inodes.
                freeInodes: state.f_files == 0 ? 1 : Double(state.f_favail) / Double(state.f_files))
        },
        isClockSynchronised: { KernelClock.isSynchronised },
        hasRandomness: {
            let random = open("/dev/random", O_RDONLY | O_NONBLOCK | O_CLOEXEC)
            guard random >= 0 else { return false }
            defer { close(random) }
            var byte: UInt8 = 0
            return read(random, &byte, 1) == 1
        },
        unit: { SystemdUnit.properties(of: $0) }, kernel: SystemKernel(), time: SystemTime(),
        relayAccount: { RelayAccount.find($0, unit: SystemdUnit.properties(of: "twoefayd.service")) })
}

/// The kernel's clock.
private enum KernelClock {
    /// Whether a program such as chrony keeps it in time (adjtimex(2)). Swift does not import the
    /// function and its structure: all zero, the structure only asks.
    static var isSynchronised: Bool {
        typealias Function = @convention(c) (UnsafeMutableRawPointer) -> Int32
        guard let symbol = dlsym(nil, "adjtimex") else { return false }
        // The structure has 208 bytes on all Linux systems with 64 bits.
        let time = UnsafeMutableRawPointer.allocate(byteCount: 512, alignment: 16)
        defer { time.deallocate() }
        time.initializeMemory(as: UInt8.self, repeating: 0, count: 512)
        let state = unsafeBitCast(symbol, to: Function.self)(time)
        return state >= 0 && state != 5  // TIME_ERROR
    }
}

/// The state of a unit, as `systemctl show` prints it.
enum SystemdUnit {
    private static let wanted = "LoadState,ActiveState,SubState,NRestarts,LimitNOFILE,User"

    static func properties(of unit: String) -> [String: String]? {
        // systemd makes this directory, and nothing else does. The name goes to a shell.
        guard Files.exists("/run/systemd/system"), unit.utf8.allSatisfy({ $0 > 0x2c && $0 < 0x7b && $0 != 0x60 }),
            let output = popen("systemctl show '\(unit)' --property=\(wanted) 2>/dev/null", "r")
        else { return nil }
        defer { pclose(output) }
        var text: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = fread(&chunk, 1, chunk.count, output)
            guard count > 0 else { break }
            text += chunk[..<count]
        }
        return parse(String(decoding: text, as: UTF8.self))
    }

    static func parse(_ text: String) -> [String: String]? {
        var properties: [String: String] = [:]
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { properties[String(parts[0])] = String(parts[1]) }
        }
        return properties.isEmpty ? nil : properties
    }
}
