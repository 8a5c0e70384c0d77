import CLinux
import Glibc
import JSON
import Synchronization
import TestSupport
import Testing

/// A relay that gets its socket from systemd. The tests are systemd's end: they open the socket, and
/// keep it while the relay restarts.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct SocketActivationTests {
    /// A listening socket on the port of a relay that has ended.
    private final class Held {
        let fd: Int32

        init(port: UInt16, listens: Bool = true) throws {
            fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            var one: Int32 = 1
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
            var address = Self.address(port)
            let bound = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(fd, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            try #require(bound == 0 && (!listens || listen(fd, 4096) == 0), "errno \(errno)")
        }

        deinit { close(fd) }

        static func address(_ port: UInt16) -> sockaddr_in {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            return address
        }
    }

    /// Starts `twoefayd` as systemd does: with the socket as descriptor 3, and its own process id.
    private func start(
        _ relay: RunningRelay, _ held: Held, process: String = "$$", name: String = "twoefayd.socket"
    ) throws -> Child {
        let script = """
            exec 3<&0 </dev/null
            export LISTEN_PID=\(process) LISTEN_FDS=1 LISTEN_FDNAMES=\(name)
            exec "$0" --config "$1"
            """
        return try Child("sh", ["-c", script, try BuiltProgram.twoefayd.path, relay.settings], input: held.fd)
    }

    private func health(_ relay: RunningRelay) async throws -> Child.Ended {
        try await Child.run(
            "curl",
            [
                "--silent", "--show-error", "--http2", "--cacert", relay.file("ca.pem"), "--output", "/dev/null",
                "--write-out", "%{http_code}", "\(relay.origin)/health",
            ])
    }

    /// Without the socket, each of these is refused while no relay runs.
    @Test func restartRefusesNobody() async throws {
        let relay = try await RunningRelay.start { settings in try settings.set("loops", to: "2") }
        await relay.stop()
        #expect(try await health(relay).status == 7)
        let held = try Held(port: relay.port)
        let first = try start(relay, held)
        let line = try await first.line(.errors, with: "event=daemon.started")
        #expect(line.contains("address=127.0.0.1:\(relay.port) "), "\(line)")
        #expect(try await health(relay).output == "200")
        first.signal(SIGTERM)
        #expect(await first.ended().status == 0)
        // No relay runs now. These are connected nevertheless.
        var clients: [Int32] = []
        defer { for client in clients { close(client) } }
        for _ in 0..<20 {
            let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = Held.address(relay.port)
            let connected = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(client, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            #expect(connected == 0)
            clients.append(client)
        }
        let statuses = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    let ended = try await health(relay)
                    return ended.output + ended.errors
                }
            }
            let second = try start(relay, held)
            var statuses: [String] = []
            for try await status in group { statuses.append(status) }
            second.signal(SIGTERM)
            #expect(await second.ended().status == 0)
            return statuses
        }
        #expect(statuses == [String](repeating: "200", count: 20))
    }

    /// Tells the websites to stop.
    private final class End: Sendable {
        let hasCome = Atomic<Bool>(false)
        let logins = Atomic<Int64>(0)
        /// The number of websites that have ended, by an error if the end has not come.
        let websites = Atomic<Int64>(0)
    }

    /// A website logs a user in again and again until it is told to stop. Each request has a
    /// connection of its own, so connections begin at every moment of a restart.
    ///
    /// - Returns: the number of logins.
    private func logins(_ website: CurlCaller, _ user: String, until end: End) async throws -> Int64 {
        // A relay that stops waits a second for a client that has not sent its request. On a slow machine
        // a client may need longer: it is cut off, and sends the same request again. None is refused.
        func sent(_ path: String, _ json: String) async throws -> CurlCaller.Answer {
            let key = ["idempotency-key": UniqueText.next()]
            while true {
                do {
                    return try await website.curl("POST", path, json: json, fields: key)
                } catch let failed as CurlCaller.Failed where [16, 35, 52, 55, 56, 92].contains(failed.status) {}
            }
        }

        defer { end.websites.add(1, ordering: .relaxed) }
        let registered = try await sent("/register", #"{"username":"\#(user)"}"#)
        let token = try #require(registered["token"]?.string, "\(registered)")
        let bound = #"{"id_token":"\#(token)","dev_token":"aabbccdd"}"#
        #expect(try await sent("/verify", bound).status == 200)
        var count: Int64 = 0
        while !end.hasCome.load(ordering: .relaxed) {
            let asked = try await sent("/login", #"{"username":"\#(user)"}"#)
            let challenge = try #require(asked["challenge"]?.string, "\(asked)")
            let body = #"{"challenge":"\#(challenge)"}"#
            #expect(try await sent("/success", body)["login"] == "success")
            #expect(try await sent("/auth", body)["login"] == "success")
            count += 1
            end.logins.add(1, ordering: .relaxed)
        }
        return count
    }

    /// `Benchmarks/Restart/run` does this at 500 logins a second.
    @Test func restartsLoseNoLogin() async throws {
        let relay = try await RunningRelay.start()
        let website = try await relay.website(
            "shop", "--answers", "website", "--number", "0", "--login-limit", "1000")
        await relay.stop()
        let held = try Held(port: relay.port)
        var running = try start(relay, held)
        _ = try await running.line(.errors, with: "event=daemon.started")
        let end = End()
        let count = try await withThrowingTaskGroup(of: Int64.self) { group in
            for index in 0..<3 {
                group.addTask { try await logins(website, "user-\(index)", until: end) }
            }
            for _ in 0..<3 {
                let before = end.logins.load(ordering: .relaxed)
                while end.logins.load(ordering: .relaxed) == before, end.websites.load(ordering: .relaxed) == 0 {
                    await Task.yield()
                }
                running.signal(SIGTERM)
                #expect(await running.ended().status == 0)
                running = try start(relay, held)
                _ = try await running.line(.errors, with: "event=daemon.started")
            }
            end.hasCome.store(true, ordering: .relaxed)
            return try await group.reduce(0, +)
        }
        #expect(try relay.count("SELECT COUNT(*) AS value FROM challenge WHERE decision = 'approve'") == count)
        #expect(try relay.count("SELECT COUNT(*) AS value FROM challenge") == count)
        running.signal(SIGTERM)
        #expect(await running.ended().status == 0)
    }

    /// A program that the relay's parent started inherits the variables, and must not believe them.
    @Test func socketsOfAnotherProcessAreIgnored() async throws {
        let relay = try await RunningRelay.start()
        await relay.stop()
        let unused = try Held(port: 0)
        let child = try start(relay, unused, process: "1")
        let line = try await child.line(.errors, with: "event=daemon.started")
        #expect(line.contains("address=127.0.0.1:\(relay.port) "), "\(line)")
        #expect(try await health(relay).output == "200")
        child.signal(SIGTERM)
        #expect(await child.ended().status == 0)
    }

    @Test func socketThatDoesNotListenIsRefused() async throws {
        let relay = try await RunningRelay.start()
        await relay.stop()
        let ended = try await start(relay, Held(port: relay.port, listens: false)).ended()
        #expect(ended.status == 1)
        #expect(ended.errors.contains("descriptor 3 from systemd cannot be used"), "\(ended.errors)")
    }

    @Test func socketOfTheMetricsPageIsKnownByItsName() async throws {
        let port = try FreePort()
        let relay = try await RunningRelay.start { settings in
            try settings.set("metrics.listen", to: "127.0.0.1:\(port.port)")
        }
        await relay.stop()
        let held = try Held(port: 0)
        let child = try start(relay, held, name: "metrics")
        let page = try await child.line(.errors, with: "event=metrics.started")
        // The page has the port of the socket, not that of the settings.
        #expect(!page.contains(":\(port.port)"), "\(page)")
        let line = try await child.line(.errors, with: "event=daemon.started")
        #expect(line.contains("address=127.0.0.1:\(relay.port) "), "\(line)")
        child.signal(SIGTERM)
        #expect(await child.ended().status == 0)
    }
}
