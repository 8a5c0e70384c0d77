import EventLoop
import Glibc
import TestSupport
import Testing
import World

@testable import Daemon

/// The signs of life for the watchdog of a service manager.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct WatchdogTests {
    @Test func signOfLifeWaitsForALoopThatHangs() async throws {
        let socket = try NotifySocket(path: nil)
        let supervisor = Supervisor.connect(to: socket.address)
        let group = try LoopGroup.start(count: 2, time: SystemTime())
        defer { group.stopAndJoin() }
        let (hangs, mayGoOn) = (Gate(), Gate())
        group.loops[1].post {
            hangs.open()
            mayGoOn.wait()
        }
        hangs.wait()
        let sign = Task { await supervisor.signOfLife(group.loops) }
        // The first loop has answered, and still nothing is sent.
        await group.loops[0].perform {}
        try socket.mark("released")
        mayGoOn.open()
        await sign.value
        #expect(try socket.next() == ["released"])
        #expect(try socket.next() == ["WATCHDOG=1"])
    }

    @Test func signsOfLifeGoOn() async throws {
        let socket = try NotifySocket(path: nil)
        let supervisor = Supervisor.connect(to: socket.address, watchdog: .milliseconds(2))
        let group = try LoopGroup.start(count: 2, time: SystemTime())
        defer { group.stopAndJoin() }
        let loop = group.loops[0]
        loop.post { [loops = group.loops] in supervisor.watch(loops, on: loop) }
        for _ in 0..<5 { #expect(try socket.next() == ["WATCHDOG=1"]) }
    }

    @Test(
        arguments: [
            (nil, nil, nil), ("0", nil, nil), ("-1", nil, nil), ("soon", nil, nil), ("5000000", "1", nil),
            ("5000000", nil, .seconds(5)), ("5000000", "\(getpid())", .seconds(5)),
        ] as [(String?, String?, Duration?)])
    func watchdogIsReadFromTheEnvironment(time: String?, process: String?, expected: Duration?) {
        #expect(Supervisor.watchdog(time, process: process) == expected)
    }

    @Test(arguments: ["relative", "/nowhere/at/all", "@twoefay-nobody", "/" + String(repeating: "x", count: 200)])
    func unusableSocketIsNamed(address: String) {
        let supervisor = Supervisor.connect(to: address, watchdog: .seconds(1))
        #expect(supervisor.fault?.contains(address) == true)
        #expect(supervisor.watchdog == nil)
        // Nobody listens, so this does nothing.
        supervisor.ready("Serves.")
    }

    @Test func statusIsOneLine() throws {
        let directory = try TemporaryDirectory()
        let socket = try NotifySocket(path: directory("notify"))
        Supervisor.connect(to: socket.address).ready("first\nsecond")
        #expect(try socket.next() == ["READY=1", "STATUS=first second"])
    }
}

/// A gate between two threads that opens once.
private final class Gate: Sendable {
    private let ends: (read: Int32, write: Int32)

    init() {
        var ends: [Int32] = [0, 0]
        precondition(pipe(&ends) == 0)
        self.ends = (ends[0], ends[1])
    }

    deinit {
        close(ends.read)
        close(ends.write)
    }

    func open() { _ = write(ends.write, "o", 1) }

    func wait() {
        var byte: UInt8 = 0
        while read(ends.read, &byte, 1) < 0 && errno == EINTR {}
    }
}
