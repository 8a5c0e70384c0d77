import CLinux
import Crypto
import EventLoop
import Glibc
import Log
import Relay
import TestSupport
import Testing
import World

@testable import KeyService

/// The service of the command beside a launcher that errs. The tests are the launcher.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct LauncherFaultTests {
    private let group: LoopGroup
    private let service: LoopBound<CommandService>
    /// The launcher's end of the socket.
    private let launcher: Int32
    private let sink = ObservedSink()
    private let order: CertificateOrder

    init() async throws {
        order = try .signed(of: try #require(ServedKeys.device()), key: try P256PrivateKey.generate())
        var pair: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &pair) == 0)
        try #require(clinux_add_flags(pair[0]) == 0)
        launcher = pair[1]
        group = try LoopGroup.start(count: 1, time: SystemTime())
        let (loop, socket, log) = (group.loops[0], pair[0], Log(minimum: .debug, sink: sink))
        let started = await loop.perform { () async -> Result<LoopBound<CommandService>, SystemFailure> in
            let service = CommandService(loop: loop, launcher: socket, timeout: .milliseconds(1), log: log)
            return Result { () throws(SystemFailure) in
                try service.start()
                return LoopBound(service, on: loop)
            }
        }
        service = try started.get()
    }

    private func run(within patience: Duration = .seconds(600)) async throws -> KeyReply {
        let (service, order, request) = (service, order, try #require(order.request))
        return await withCheckedContinuation { continuation in
            service.loop.post {
                service.value.run(order, request, of: 1, within: patience) { continuation.resume(returning: $0) }
            }
        }
    }

    /// Returns the next packet that the service sends; an empty one after its end.
    private func packet() -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: CommandLauncher.mostBytes)
        let count = recv(launcher, &bytes, bytes.count, 0)
        return Array(bytes.prefix(max(0, count)))
    }

    private func send(_ message: [UInt8]) {
        #expect(Glibc.send(launcher, message, message.count, Int32(MSG_NOSIGNAL)) == message.count)
    }

    private func stop() async {
        let service = service
        await service.loop.perform { service.value.stop() }
        group.stopAndJoin()
        close(launcher)
    }

    @Test func runWithoutAnEndIsGivenUp() async throws {
        for _ in 0...CommandLauncher.mostAtOnce {
            guard case .away(let reason) = try await run(within: .milliseconds(1)) else {
                Issue.record("a run that was given up has another answer")
                break
            }
            #expect(reason == "the launcher of the command did not report the end of the run")
            await sink.lines(of: "keys.command", count: 1)
        }
        // The ends come late, and the answer to a later request is none of theirs.
        async let later = run()
        for _ in 0...CommandLauncher.mostAtOnce {
            let late = try #require(CommandRun(message: packet()))
            send(CommandEnd(.exited(0), output: [1]).message(of: late.id))
        }
        let last = try #require(CommandRun(message: packet()))
        send(CommandEnd(.exited(0), output: [2]).message(of: last.id))
        guard case .output([2]) = try await later else {
            Issue.record("the later request has another answer")
            return await stop()
        }
        await stop()
    }

    @Test(arguments: ["{}", "\u{fffe}", #"{"id":1,"end":"exited","number":0,"output":"","error":"\#u{fffe}"}"#])
    func messageThatIsNoEndOfARunEndsTheLauncher(_ message: String) async throws {
        async let waiting = run()
        #expect(CommandRun(message: packet()) != nil)
        send(Array(message.utf8))
        guard case .away(let reason) = try await waiting else {
            Issue.record("the request has another answer")
            return await stop()
        }
        #expect(reason == "the launcher of the command sent a message that is no end of a run")
        #expect(packet().isEmpty)
        guard case .away = try await run() else {
            Issue.record("a request without a launcher has another answer")
            return await stop()
        }
        #expect(sink.lines.contains { $0.contains("level=error event=keys.launcher") }, "\(sink.lines)")
        await stop()
    }
}
