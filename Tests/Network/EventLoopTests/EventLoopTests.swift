import Glibc
import Synchronization
import Testing
import World

@testable import EventLoop

/// Runs `body` with a real loop on its own thread.
func withLoop<Value>(_ body: (EventLoop) async throws -> Value) async throws -> Value {
    let group = try LoopGroup.start(count: 1, time: SystemTime())
    defer { group.stopAndJoin() }
    return try await body(group.loops[0])
}

struct EventLoopTests {
    @Test func postedWorkRunsOnTheLoopInOrder() async throws {
        try await withLoop { loop in
            let seen = Shared<[Int]>([])
            for number in 0..<1000 {
                loop.post {
                    precondition(EventLoop.current === loop)
                    seen.withLock { $0.append(number) }
                }
            }
            await loop.perform {}
            #expect(seen.withLock { $0 } == Array(0..<1000))
        }
    }

    @Test func sleepingLoopIsWokenByOtherThreads() async throws {
        try await withLoop { loop in
            let count = Shared(0)
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        for _ in 0..<500 {
                            let value = await loop.perform {
                                count.withLock { value in
                                    value += 1
                                    return value
                                }
                            }
                            #expect(value > 0)
                        }
                    }
                }
            }
            #expect(count.withLock { $0 } == 4000)
        }
    }

    @Test func spawnRunsAtOnceToItsFirstSuspension() async throws {
        try await withLoop { loop in
            let steps = await loop.perform {
                let steps = Shared<[String]>([])
                loop.spawn {
                    steps.withLock { $0.append("started") }
                    await loop.sleep(for: .zero)
                    steps.withLock { $0.append("resumed") }
                }
                return steps.withLock { $0 }
            }
            #expect(steps == ["started"])
        }
    }

    @Test func taskStaysOnItsLoop() async throws {
        try await withLoop { loop in
            let worker = try WorkerThread(name: "other")
            defer { worker.stop() }
            let places = await loop.perform {
                var places: [Bool] = [loop.isCurrent]
                await withUnsafeContinuation { continuation in worker.post { continuation.resume() } }
                places.append(loop.isCurrent)
                async let child = Self.whereAmI(loop)
                places.append(await child)
                await withTaskGroup(of: Bool.self) { group in
                    for _ in 0..<3 { group.addTask { loop.isCurrent } }
                    for await place in group { places.append(place) }
                }
                await loop.sleep(for: .milliseconds(1))
                places.append(loop.isCurrent)
                return places
            }
            #expect(places == Array(repeating: true, count: 7))
        }
    }

    @concurrent private static func whereAmI(_ loop: EventLoop) async -> Bool { loop.isCurrent }

    @Test func actorRunsOnItsLoop() async throws {
        try await withLoop { loop in
            let counter = Counter(loop)
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<4 { group.addTask { for _ in 0..<100 { await counter.count() } } }
            }
            #expect(await counter.value == 400)
        }
    }

    @Test func timersFireInOrderUnlessCancelled() async throws {
        try await withLoop { loop in
            let fired = await loop.perform {
                await withUnsafeContinuation { (continuation: UnsafeContinuation<[String], Never>) in
                    let fired = Shared<[String]>([])
                    let note: @Sendable (String) -> Void = { name in
                        precondition(loop.isCurrent)
                        fired.withLock { $0.append(name) }
                    }
                    loop.schedule(after: .milliseconds(6)) {
                        note("second")
                        continuation.resume(returning: fired.withLock { $0 })
                    }
                    let never = loop.schedule(after: .milliseconds(4)) { note("never") }
                    loop.schedule(after: .milliseconds(2)) { note("first") }
                    loop.cancel(never)
                }
            }
            #expect(fired == ["first", "second"])
        }
    }

    /// The loop polls its descriptors after each batch.
    @Test func manyDueTimersFireInBatches() async throws {
        final class Listener: TurnEndObserver {
            let ended: () -> Void
            init(_ ended: @escaping () -> Void) { self.ended = ended }
            func turnEnded() { ended() }
        }
        try await withLoop { loop in
            let portions = await loop.perform {
                await withUnsafeContinuation { (continuation: UnsafeContinuation<[Int], Never>) in
                    let portions = Shared<[Int]>([0])
                    let listener = Listener { portions.withLock { $0.append(0) } }
                    let moment = loop.now + .milliseconds(1)
                    for _ in 0..<2000 {
                        loop.schedule(at: moment) {
                            if portions.withLock({ $0[$0.count - 1] == 0 }) { loop.atTurnEnd(listener) }
                            portions.withLock { $0[$0.count - 1] += 1 }
                        }
                    }
                    loop.schedule(at: moment) { continuation.resume(returning: portions.withLock { $0 }) }
                }
            }
            #expect(portions.reduce(0, +) == 2000)
            #expect(portions.allSatisfy { $0 <= 512 })
        }
    }

    @Test func descriptorIsWatchedUntilCancelled() async throws {
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        let (reader, writer) = (ends[0], ends[1])
        defer {
            close(reader)
            close(writer)
        }
        try await withLoop { loop in
            let reported = await loop.perform {
                await withUnsafeContinuation { (continuation: UnsafeContinuation<Readiness, Never>) in
                    let box = Box<DescriptorWatcher?>(nil)
                    box.value = try? loop.watch(fd: reader, .read) { readiness in
                        precondition(loop.isCurrent)
                        box.value?.cancel()
                        box.value = nil
                        continuation.resume(returning: readiness)
                    }
                    _ = write(writer, "x", 1)
                }
            }
            #expect(reported == .read)
            // The byte is still unread, but the watcher is cancelled. A second report would resume
            // the continuation twice.
            await loop.perform { await loop.sleep(for: .milliseconds(2)) }
        }
    }

    @Test func turnEndRunsOnceAfterTheTurn() async throws {
        try await withLoop { loop in
            let log = await loop.perform {
                let recorder = Recorder()
                loop.atTurnEnd(recorder)
                loop.post { recorder.log.withLock { $0.append("work") } }
                await loop.sleep(for: .milliseconds(1))
                return recorder.log.withLock { $0 }
            }
            #expect(log == ["work", "end"])
        }
    }

    @Test func workerRunsInOrderAndFinishesBeforeStopping() async throws {
        let worker = try WorkerThread(name: "worker")
        let seen = Shared<[Int]>([])
        for number in 0..<1000 { worker.post { seen.withLock { $0.append(number) } } }
        await withUnsafeContinuation { continuation in
            worker.post { continuation.resume() }
            worker.stop()
        }
        #expect(seen.withLock { $0 } == Array(0..<1000))
    }

    @Test func onlyAStoppedWorkerIsJoined() throws {
        let worker = try WorkerThread(name: "worker")
        #expect(!worker.join(within: .milliseconds(1)))
        let seen = Shared<[Int]>([])
        for number in 0..<1000 { worker.post { seen.withLock { $0.append(number) } } }
        worker.stop()
        // Every call of `join` after the stop succeeds.
        for _ in 0..<2 { #expect(worker.join(within: .seconds(60))) }
        #expect(seen.withLock { $0 } == Array(0..<1000))
    }

    @Test func loopBoundValueTrapsOnAnotherLoop() async {
        await #expect(processExitsWith: .failure) {
            let loop = EventLoop.simulated(name: "sim", time: SystemTime(), pick: { _ in 0 })
            let bound = loop.asCurrent { LoopBound(7, on: loop) }
            print(bound.value)
        }
    }
}

private actor Counter {
    private let loop: EventLoop
    private(set) var value = 0

    init(_ loop: EventLoop) { self.loop = loop }
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    func count() {
        precondition(loop.isCurrent)
        value += 1
    }
}

private final class Recorder: TurnEndObserver, Sendable {
    let log = Shared<[String]>([])
    func turnEnded() { log.withLock { $0.append("end") } }
}

/// A value that several closures share behind a lock.
final class Shared<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    init(_ value: Value) { self.value = Mutex(value) }
    func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        value.withLock { value in
            var copy = value
            defer { value = copy }
            return body(&copy)
        }
    }
}

private final class Box<Value> {
    var value: Value
    init(_ value: Value) { self.value = value }
}
