import EventLoop
import Glibc
import Log
import Relay
import Storage
import Synchronization
import World

/// The figures of one engine. One run on one machine measures all engines, so compare only their
/// ratios.
struct Figures {
    var alone = 0.0
    var aloneAt99 = 0.0
    var together = 0.0
    var togetherAt99 = 0.0
    var reads = 0.0
}

/// The state that the tasks of one measurement share.
final class Tally: Sendable {
    private let number = Atomic<Int>(0)
    private let failures = Atomic<Int>(0)
    private let times = Mutex<[Int64]>([])

    func next() -> Int { number.wrappingAdd(1, ordering: .relaxed).oldValue }
    func add(_ own: [Int64]) { times.withLock { $0.append(contentsOf: own) } }
    var sorted: [Int64] { times.withLock { $0.sorted() } }

    /// Prints the first failure. A measurement with failures is not valid.
    func note(_ failure: any Error) {
        if failures.wrappingAdd(1, ordering: .relaxed).oldValue == 0 { print("failed: \(failure)") }
    }
}

/// Keeps `width` scripts in flight on one loop for `seconds`. Returns the scripts per second, and
/// the 99th percentile in milliseconds.
func measure(
    _ store: Store, on loop: EventLoop, width: Int, seconds: Int, _ script: @escaping @Sendable (Int) -> Script
) async -> (rate: Double, at99: Double) {
    let time = SystemTime()
    let tally = Tally()
    let started = time.instant()
    let end = started + .seconds(seconds)
    await loop.perform {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<width {
                group.addTask {
                    var own: [Int64] = []
                    while true {
                        let began = time.instant()
                        guard began < end else { break }
                        let next = script(tally.next())
                        do {
                            _ = try await store.run(next)
                            own.append((time.instant() - began).wholeNanoseconds)
                        } catch {
                            tally.note(error)
                        }
                    }
                    tally.add(own)
                }
            }
        }
    }
    let took = Double((time.instant() - started).wholeNanoseconds) / 1e9
    let all = tally.sorted
    guard !all.isEmpty else { return (0, 0) }
    return (Double(all.count) / took, Double(all[all.count * 99 / 100]) / 1e6)
}

func figures(_ url: StorageURL, seconds: Int) async throws -> Figures {
    let store = try Store.open(url, schema: .migrate, time: SystemTime(), log: Log(time: SystemTime()))
    defer { store.close() }
    let ask = AskLike()
    try ask.fill(store)
    let group = try LoopGroup.start(count: 1, time: SystemTime())
    defer { group.stopAndJoin() }
    let loop = group.loops[0]
    _ = await measure(store, on: loop, width: 64, seconds: 1) { ask.script($0) }
    var figures = Figures()
    (figures.alone, figures.aloneAt99) = await measure(store, on: loop, width: 1, seconds: seconds) { ask.script($0) }
    (figures.together, figures.togetherAt99) = await measure(store, on: loop, width: 64, seconds: seconds) {
        ask.script($0)
    }
    (figures.reads, _) = await measure(store, on: loop, width: 64, seconds: seconds) { ask.read($0) }
    return figures
}

func padded(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
}

func rounded(_ value: Double, _ digits: Int = 0) -> String {
    let scale = pow(10, Double(digits))
    let whole = (value * scale).rounded() / scale
    return digits == 0 ? "\(Int(whole))" : "\(whole)"
}

let arguments = CommandLine.arguments.dropFirst()
guard arguments.count >= 2, let seconds = Int(arguments.first ?? "") else {
    print("usage: StorageBenchmark SECONDS URL… (Benchmarks/Storage/run starts a MariaDB and gives all of it)")
    exit(2)
}
let head = ["alone/s", "p99 ms", "64 in flight/s", "p99 ms", "ratio", "point reads/s", "reads/alone"]
let widths = [10, 8, 15, 8, 7, 14, 12]
print(padded("", 10) + zip(head, widths).map { padded($0, $1) }.joined())
for text in arguments.dropFirst() {
    let url = try StorageURL(text)
    let found = try await figures(url, seconds: seconds)
    let cells = [
        rounded(found.alone), rounded(found.aloneAt99, 2), rounded(found.together), rounded(found.togetherAt99, 2),
        rounded(found.together / found.alone, 1), rounded(found.reads), rounded(found.reads / found.alone, 1),
    ]
    let name = String(text.prefix { $0 != ":" }) + (url == .memory ? " memory" : "")
    print(name + padded("", 10 - name.count) + zip(cells, widths).map { padded($0, $1) }.joined())
}
