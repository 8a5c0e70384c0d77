import Glibc

struct Fault: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

func complain(_ text: String) {
    let line = Array((text + "\n").utf8)
    _ = line.withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
}

func contents(_ path: String) throws -> [UInt8] {
    guard let file = fopen(path, "r") else { throw Fault("cannot read \(path)") }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var next = fgetc(file)
    while next != EOF {
        bytes.append(UInt8(truncatingIfNeeded: next))
        next = fgetc(file)
    }
    return bytes
}

/// Returns the microseconds since an arbitrary moment.
func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
}

/// Returns the processor time of this process, in microseconds.
func processorTime() -> Double {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    func microseconds(_ time: timeval) -> Double { Double(time.tv_sec) * 1e6 + Double(time.tv_usec) }
    return microseconds(usage.ru_utime) + microseconds(usage.ru_stime)
}

extension [Double] {
    /// Returns a quantile. The values must be sorted.
    func quantile(_ share: Double) -> Double { isEmpty ? .nan : self[Swift.min(count - 1, Int(Double(count) * share))] }
}

func text(_ value: Double, _ digits: Int = 1) -> String {
    let scale = [1.0, 10, 100, 1000][digits]
    return "\((value * scale).rounded() / scale)"
}
