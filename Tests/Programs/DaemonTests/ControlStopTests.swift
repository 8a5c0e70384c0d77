import EventLoop
import Glibc
import JSON
import KeyService
import Log
import Storage
import Synchronization
import TestSupport
import Testing
import World

@testable import Daemon

/// The stop of the control socket while a command runs.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ControlStopTests {
    /// The commands `website add`, a change in two steps, and `website list`, a read. Each waits in its
    /// first step until the test lets it go on.
    private final class Commands: ControlCommands {
        let begun = WakeSemaphore()
        let mayGoOn = WakeSemaphore()
        let steps = Mutex(0)

        func read(_ arguments: [String]) throws(Failure) -> ControlCommand {
            let isChange = arguments.contains("add")
            let reader = CommandLineReader(
                program: "twoefay", about: "", shared: Program.sharedOptions,
                commands: [Command("website add", "Adds."), Command("website list", "Lists.")])
            guard case .run(let invocation) = try reader.read(arguments) else {
                throw Failure(.usage, "no command", next: "")
            }
            return ControlCommand(invocation, for: [.operator], isChange: isChange, about: nil, note: "test") {
                [self] invocation throws(Failure) in
                for _ in 0..<2 {
                    try invocation.host?.requireCaller(toChange: isChange)
                    steps.withLock { $0 += 1 }
                    begun.signal()
                    mayGoOn.wait()
                }
                return Report("done", json: .null)
            }
        }
    }

    private struct Site {
        let directory: TemporaryDirectory
        let rig: RelayRig
        let loop: EventLoop
        let socket: LoopBound<ControlSocket>
        let resources: ControlResources
        let commands = Commands()
        let path: String

        init() async throws {
            directory = try TemporaryDirectory()
            path = directory("control")
            rig = try await RelayRig(.memory)
            loop = rig.loop
            let text = """
                origin: https://login.example.com:8080
                listen: 127.0.0.1:8080
                storage: sqlite:\(directory("twoefay.db"))
                control:
                  socket: unix:\(path)
                """
            let settings = try SettingsReader.read(Array(text.utf8), file: directory("twoefay.yaml"))
            let log = Log(minimum: .error)
            let keys = MasterKey.generate(SystemRandomness(), at: SystemTime().now()).dataKeys
            try Store.open(try settings.store(), schema: .migrate, time: SystemTime(), log: log).close()
            let resources = try #require(
                try ControlResources.open(settings, keys, beside: rig.store, StoreOptions(), log: log))
            self.resources = resources
            let listener = try #require(try ControlListener.open(settings))
            let (loop, commands) = (loop, commands)
            socket = try await loop.perform { () -> Result<LoopBound<ControlSocket>, any Error> in
                Result {
                    let runner = ControlRunner(resources: resources, commands: commands, log: log) {
                        _ throws(Failure) in throw Failure(.failed, "nothing is reloaded", next: "")
                    }
                    let socket = try ControlSocket(listener, runner, on: loop, log: log)
                    try socket.start()
                    return LoopBound(socket, on: loop)
                }
            }.get()
        }

        /// Sends a command, and returns when it has begun its first step.
        func begin(_ words: String...) async throws -> Int32 {
            let fd = try UnixSocket.connect(path, waitingSeconds: 5)
            let line = ControlRequest(arguments: words, isColored: false, showsProgress: false).line
            #expect(Glibc.send(fd, line, line.count, Int32(MSG_NOSIGNAL)) == line.count)
            await blocking { [commands] in commands.begun.wait() }
            return fd
        }

        /// Begins the stop. The returned task ends when no command runs any more.
        func stop() async -> Task<Void, Never> {
            let begun = WakeSemaphore()
            let task = Task { [loop, socket] in
                await loop.perform {
                    // The stop runs up to its wait before the loop does anything else.
                    loop.post { begun.signal() }
                    await socket.value.stop()
                }
            }
            await blocking { begun.wait() }
            return task
        }

        /// Reads the whole answer.
        func answer(_ fd: Int32) async -> String {
            await blocking {
                var (text, chunk) = ([UInt8](), [UInt8](repeating: 0, count: 4096))
                var readable = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
                while poll(&readable, 1, -1) >= 0 {
                    let count = recv(fd, &chunk, chunk.count, 0)
                    guard count > 0 else { break }
                    text += chunk[..<count]
                }
                close(fd)
                return String(decoding: text, as: UTF8.self)
            }
        }
    }

    /// The first change is in progress: it ends. The second one does not begin, and the caller is told.
    @Test func changeThatHasBegunEndsAndIsAnswered() async throws {
        let site = try await Site()
        defer { site.resources.close() }
        let fd = try await site.begin("website", "add")
        let stop = await site.stop()
        site.commands.mayGoOn.signal()
        let answer = await site.answer(fd)
        #expect(answer.contains(#""message":"the relay stops""#), "\(answer)")
        #expect(site.commands.steps.withLock { $0 } == 1)
        await stop.value
        #expect(access(site.path, F_OK) != 0)
    }

    /// Both changes were done when the stop began: the caller gets the whole answer.
    @Test func changeInItsLastStepIsAnswered() async throws {
        let site = try await Site()
        defer { site.resources.close() }
        let fd = try await site.begin("website", "add")
        site.commands.mayGoOn.signal()
        await blocking { [commands = site.commands] in commands.begun.wait() }
        let stop = await site.stop()
        site.commands.mayGoOn.signal()
        let answer = await site.answer(fd)
        #expect(answer.contains(#"{"out":"done\n"}"#) && answer.contains(#"{"status":"ok"}"#), "\(answer)")
        await stop.value
    }

    /// The caller of a read is disconnected, because nothing depends on the answer.
    @Test func readEndsWithoutAnAnswer() async throws {
        let site = try await Site()
        defer { site.resources.close() }
        let fd = try await site.begin("website", "list")
        let stop = await site.stop()
        #expect(await site.answer(fd) == "")
        site.commands.mayGoOn.signal()
        await stop.value
        #expect(site.commands.steps.withLock { $0 } == 1)
    }

    /// A caller that does not read its answer delays no stop.
    @Test func callerThatDoesNotReadIsLeft() throws {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        let stop = ControlStop()
        stop.begin()
        // Without the stop, the caller would have an hour.
        let reply = ControlReply(ends[0], patience: CallerPatience(once: .seconds(3_600)), stop: stop)
        reply.say(String(repeating: "x", count: 4 << 20))
        #expect(reply.isGone)
    }
}
