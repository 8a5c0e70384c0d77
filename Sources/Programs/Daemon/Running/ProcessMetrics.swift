import CLinux
import Glibc
import Metrics
import World

/// The figures of this process, under the names that Prometheus gives them everywhere, and the
/// version of the program.
enum ProcessMetrics {
    static func show(startedAt start: Timestamp, in registry: Registry) {
        registry.constant(
            "twoefay_build_info", "The version of the program, as a label.",
            labels: [(name: "version", value: Program.version)], 1)
        registry.secondsCounter("process_cpu_seconds_total", "User and system time of the process.") { cpuTime }
        registry.gauge("process_resident_memory_bytes", "Memory of the process that is in RAM.") {
            pages(.resident) * Int64(sysconf(Int32(_SC_PAGESIZE)))
        }
        registry.gauge("process_virtual_memory_bytes", "Address space of the process.") {
            pages(.virtual) * Int64(sysconf(Int32(_SC_PAGESIZE)))
        }
        registry.gauge("process_open_fds", "Open descriptors.") { openDescriptors }
        registry.gauge("process_max_fds", "Limit of open descriptors.") { descriptorLimit }
        registry.gauge("process_start_time_seconds", "Start of the process, in seconds since 1970.") {
            start.milliseconds / 1000
        }
    }

    private static var cpuTime: Duration {
        var usage = rusage()
        guard getrusage(RUSAGE_SELF.rawValue, &usage) == 0 else { return .zero }
        let seconds = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
        let microseconds = usage.ru_utime.tv_usec + usage.ru_stime.tv_usec
        return .seconds(seconds) + .microseconds(microseconds)
    }

    /// The fields of `/proc/self/statm`, in their order.
    private enum Memory: Int {
        case virtual, resident
    }

    /// Returns 0 if the kernel shows nothing: a missing figure must not fail the whole page.
    private static func pages(_ memory: Memory) -> Int64 {
        guard let bytes = try? Files.read("/proc/self/statm") else { return 0 }
        let fields = String(decoding: bytes, as: UTF8.self).split(separator: " ")
        return fields.count > memory.rawValue ? Int64(fields[memory.rawValue]) ?? 0 : 0
    }

    private static var openDescriptors: Int64 {
        guard let directory = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(directory) }
        var count: Int64 = 0
        while readdir(directory) != nil { count += 1 }
        // Without `.`, `..` and the descriptor of the directory itself.
        return max(0, count - 3)
    }

    private static var descriptorLimit: Int64 {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 0 }
        return Int64(clamping: limit.rlim_cur)
    }
}
