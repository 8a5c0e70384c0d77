import Daemon
import EventLoop
import FakePushServices
import HTTP
import JSON
import Log
import Synchronization
import World

/// A fake push service that runs until a signal stops it, and prints every request. It is used only
/// on its loop.
final class FakeService {
    struct Options: Sendable {
        let kind: FakeServiceKind
        let listen: HostPort
        let hosts: [String]
        let topic: String
        let directory: String
        let control: String?
        let showsCertificate: Bool
    }

    private let options: Options
    private let loop: EventLoop
    private let output: PhoneOutput
    private let directory: TeamDirectory
    private let project: FakeProject?
    private let service: FakePushService
    private var control: ControlFile?

    init(_ options: Options, loop: EventLoop, output: PhoneOutput) throws(Failure) {
        self.options = options
        self.loop = loop
        self.output = output
        var names = options.hosts
        for name in [options.listen.host, "localhost", "127.0.0.1", "::1"] where !names.contains(name) {
            names.append(name)
        }
        directory = try TeamDirectory(options.directory, topic: options.topic, names: names, at: loop.time.now())
        project = options.kind == .fcm ? try directory.project() : nil
        do {
            let (time, tls) = (loop.time, try directory.team.tls())
            let onRequest = { @Sendable (request: RecordedRequest) in output.emit(request, at: time.now()) }
            let onConnection = { @Sendable (event: ConnectionEvent) in output.emit(event) }
            let (randomness, log) = (SystemRandomness(), Log(minimum: .error))
            service =
                if let project {
                    FakePushService(
                        loop: loop, tls: tls, project: project, keeping: .nothing, randomness: randomness, log: log,
                        onRequest: onRequest, onConnection: onConnection)
                } else {
                    FakePushService(
                        loop: loop, tls: tls, topic: options.topic, authentication: directory.team.anyAuthentication,
                        keeping: .nothing, randomness: randomness, log: log, onRequest: onRequest,
                        onConnection: onConnection)
                }
        } catch {
            throw Failure(
                .failed, "the push service cannot be created: \(error)",
                next: "Remove \(options.directory). The next start creates it again.")
        }
    }

    func run(until signals: Signals) async throws(Failure) -> Report {
        if let path = options.control {
            let control = try ControlFile(path, of: options.kind)
            try await follow(control.control)
            self.control = control
        }
        let port = try await listen()
        try printListening(port)
        let shared = LoopBound(self, on: loop)
        if control != nil { loop.spawn { await shared.value.watch() } }
        while case .reload = await signals.next() { await readAgain(always: true) }
        control = nil
        await service.stop()
        let (requests, accepted) = (service.requestCount, service.acceptedCount)
        return Report(
            "\(requests) requests, \(accepted) pushes accepted.",
            json: .object([
                "event": "ended", "requests": .integer(Int64(requests)), "accepted": .integer(Int64(accepted)),
            ]))
    }

    private func listen() async throws(Failure) -> UInt16 {
        let listen = options.listen
        do {
            guard let address = SocketAddress(host: listen.host, port: listen.port) else {
                throw Failure(
                    .usage, "--listen \(listen.settingsText) is not an address",
                    next: "Give an address, as in 127.0.0.1:2197. For names in the certificate, use --host.")
            }
            if listen.port != 0 { try Socket.requireFree(address) }
            return try await service.start(host: listen.host, port: listen.port)
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure(
                .unavailable, "cannot listen on \(listen.settingsText): \(error)",
                next: "Choose another address or port with --listen, or stop the program that uses it.")
        }
    }

    // MARK: Control file

    private func follow(_ control: Control) async throws(Failure) {
        do { try await service.follow(control, of: directory.team) } catch {
            throw Failure(
                .failed, "a certificate cannot be issued: \(error)", next: "Check the files in the team's directory.")
        }
    }

    /// Checks the control file five times a second. Polling works for every editor, whether it
    /// writes or replaces the file.
    private func watch() async {
        while control != nil {
            await loop.sleep(for: .milliseconds(200))
            await readAgain(always: false)
        }
    }

    private func readAgain(always: Bool) async {
        guard var file = control, always || file.hasChanged() else { return }
        do throws(Failure) {
            try file.read()
            control = file
            try await follow(file.control)
            output("\(file.path) is read again, and in force from now on.", "control", ["file": .string(file.path)])
        } catch {
            control = file
            output(
                "\(error.message)\nThe previous contents stay in force.", "trouble", ["error": .string(error.message)])
        }
    }

    // MARK: Output

    private func printListening(_ port: UInt16) throws(Failure) {
        let host = options.hosts.first ?? (options.listen.host == "0.0.0.0" ? "localhost" : options.listen.host)
        let endpoint = WebAddress(secure: true, host: host, port: port).text
        let settings =
            try project.map { project throws(Failure) in
                try directory.settings(endpoint: endpoint, of: project)
            } ?? directory.settings(endpoint: endpoint, showsCertificate: options.showsCertificate)
        let lines = settings.map { "    \($0.key): \(Self.quoted($0.value))" }.joined(separator: "\n")
        var members: JSONObject = [:]
        for (key, value) in settings { members.set(key, .string(value)) }
        output(
            """
            The push service listens at \(endpoint), for \(directory.isNew ? "a new" : "the") \(options.kind == .fcm ? "project" : "team") in \(directory.path).
            In the relay's settings:

            push:
              \(options.kind == .fcm ? "fcm" : "apns"):
            \(lines)

            Ctrl-C ends it.

            """, "listening", ["port": .integer(Int64(port)), "settings": .object(members)])
    }

    /// Returns the text plain, unless YAML would read it as something else.
    private static func quoted(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { byte in
            UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20 || UInt8(ascii: "-")...UInt8(ascii: ":") ~= byte
                || byte == UInt8(ascii: "_")
        }
        return isPlain ? text : JSONWriter.text(.string(text))
    }
}

extension PhoneOutput {
    func emit(_ request: RecordedRequest, at now: Timestamp) {
        let push = request.push
        var members: JSONObject = [
            "at": .string(now.rfc3339), "connection": .integer(Int64(request.connection)),
            "stream": .integer(Int64(request.stream)), "path": .string(request.path),
            "answer": .string(request.answer),
        ]
        guard let push else {
            return self("\(now.rfc3339) #\(request.connection) \(request.path): \(request.answer)", "request", members)
        }
        let more: [(String, JSONValue?)] = [
            ("device", .string(push.deviceToken)), ("id", .string(push.id)), ("push_type", .string(push.pushType)),
            ("priority", .integer(Int64(push.priority))), ("expiration", push.expiration.map { .integer($0) }),
            ("collapse_id", push.collapseID.map { .string($0) }), ("payload", .object(push.payload)),
        ]
        for (name, value) in more { if let value { members.set(name, value) } }
        let text =
            "\(now.rfc3339) #\(request.connection) \(push.deviceToken) \(push.pushType) \(push.payloadBytes) bytes: "
            + request.answer
        self(text, "request", members)
    }

    func emit(_ event: ConnectionEvent) {
        self(
            "#\(event.number) \(event.isOpen ? "connected from \(event.remote)" : "disconnected")",
            event.isOpen ? "connected" : "disconnected",
            ["connection": .integer(Int64(event.number)), "remote": .string(event.remote)])
    }
}
