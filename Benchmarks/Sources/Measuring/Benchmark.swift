import EventLoop
import Glibc
import Synchronization
import World

/// The reason why a benchmark gives no figures.
public struct Unmeasured: Error, CustomStringConvertible {
    public let description: String

    public init(_ description: String) { self.description = description }
}

/// Runs a benchmark on an event loop of the calling thread. If it throws, the process prints the
/// error and ends with status 1.
public func measure(_ body: @escaping @Sendable () async throws -> Void) throws {
    let loop = try EventLoop(name: "main", time: SystemTime())
    let failure = Mutex<String?>(nil)
    loop.post {
        loop.spawn {
            do { try await body() } catch { failure.withLock { $0 = "\(error)" } }
            loop.stop()
        }
    }
    loop.run()
    guard let failure = failure.withLock({ $0 }) else { return }
    print("not measured: \(failure)")
    exit(1)
}

/// Returns the bytes of a file.
public func read(_ path: String) throws -> [UInt8] {
    guard let file = fopen(path, "r") else { throw Unmeasured("\(path) cannot be read") }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { bytes += buffer[..<count] }
    return bytes
}

public func percentile(_ values: [Double], _ share: Double) -> Double {
    let sorted = values.sorted()
    return sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
}

public func median(_ values: [Double]) -> Double { percentile(values, 0.5) }

/// A counter that gives each concurrent task its own numbers.
public final class Turns: Sendable {
    private let taken = Atomic<Int>(0)

    public init() {}

    public func next() -> Int { taken.wrappingAdd(1, ordering: .relaxed).oldValue }
    public var total: Int { taken.load(ordering: .relaxed) }
}
