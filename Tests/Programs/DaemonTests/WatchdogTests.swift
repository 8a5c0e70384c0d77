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
        let (hangs, mayGoOn) = (WakeSemaphore(), WakeSemaphore())
        group.loops[1].post {
            hangs.signal()
            mayGoOn.wait()
        }
        hangs.wait()
        let (first, ended) = (group.loops[0], WakeSemaphore())
        first.post { [loops = group.loops] in
            first.spawn {
                await supervisor.signOfLife(loops)
                ended.signal()
            }
        }
        // The first loop has answered, and still nothing is sent.
        for _ in 0..<3 { await first.perform {} }
        try socket.mark("released")
        mayGoOn.signal()
        ended.wait()
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
