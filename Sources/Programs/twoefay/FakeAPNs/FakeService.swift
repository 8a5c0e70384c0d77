import Daemon
import EventLoop
import FakeAPNs
import HTTP
import JSON
import Log
import Synchronization
import World

/// A fake push service that runs until a signal stops it, and prints every request. It is used only
/// on its loop.
final class FakeService {
    struct Options: Sendable {
        let listen: HostPort
        let hosts: [String]
        let topic: String
        let directory: String
        let control: String?
        let showsCertificate: Bool
    }

    private let wish: Options
    private let loop: EventLoop
    private let telling: PhoneOutput
    private let directory: TeamDirectory
    private let service: FakeAPNs
    private var control: ControlFile?

    init(_ wish: Options, loop: EventLoop, telling: PhoneOutput) throws(Failure) {
        self.wish = wish
        self.loop = loop
        self.telling = telling
        var names = wish.hosts
        for name in [wish.listen.host, "localhost", "127.0.0.1", "::1"] where !names.contains(name) {
            names.append(name)
        }
        directory = try TeamDirectory(wish.directory, topic: wish.topic, names: names, at: loop.time.now())
        do {
            let time = loop.time
            service = FakeAPNs(
                loop: loop, tls: try directory.team.tls(), topic: wish.topic,
                authentication: directory.team.anyAuthentication, keeping: .nothing, randomness: SystemRandomness(),
                log: Log(minimum: .error), onRequest: { telling.tell($0, at: time.now()) },
                onConnection: { telling.tell($0) })
        } catch {
            throw Failure(
                .failed, "the service cannot be made: \(error)", next: "Is \(wish.directory) whole? A new one is made.")
        }
    }

    func run(until signals: Signals) async throws(Failure) -> Report {
        if let path = wish.control {
            let control = try ControlFile(path)
            try await follow(control.control)
            self.control = control
        }
        let port = try await listen()
        tellListening(port)
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
        let place = wish.listen
        do {
            guard let address = SocketAddress(host: place.host, port: place.port) else {
                throw Failure(
                    .usage, "--listen \(place.settingsText) names no address of a machine",
                    next: "Give an address, as in 127.0.0.1:2197; names for the certificate are --host.")
            }
            if place.port != 0 { try Socket.requireFree(address) }
            return try await service.start(host: place.host, port: place.port)
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure(
                .unavailable, "cannot listen on \(place.settingsText): \(error)",
                next: "Choose another address or port with --listen, or stop what has it.")
        }
    }

    // MARK: Control file

    private func follow(_ control: Control) async throws(Failure) {
        do { try await service.follow(control, of: directory.team) } catch {
            throw Failure(.failed, "a certificate cannot be made: \(error)", next: "Is the team's directory whole?")
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
            telling("\(file.path) is read again, and holds from now on.", "control", ["file": .string(file.path)])
        } catch {
            control = file
            telling(
                "\(error.message)\nWhat held before still holds.", "trouble", ["error": .string(error.message)])
        }
    }

    // MARK: Output

    private func tellListening(_ port: UInt16) {
        let host = wish.hosts.first ?? (wish.listen.host == "0.0.0.0" ? "localhost" : wish.listen.host)
        let endpoint = WebAddress(secure: true, host: host, port: port).text
        let settings = directory.settings(endpoint: endpoint, showsCertificate: wish.showsCertificate)
        let lines = settings.map { "    \($0.key): \(Self.quoted($0.value))" }.joined(separator: "\n")
        var members: JSONObject = [:]
        for (key, value) in settings { members.set(key, .string(value)) }
        telling(
            """
            A push service listens at \(endpoint), for \(directory.isNew ? "a new" : "the") team in \(directory.path).
            In the relay's settings:

            push:
              apns:
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
    func tell(_ request: RecordedRequest, at now: Timestamp) {
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

    func tell(_ news: ConnectionEvent) {
        self(
            "#\(news.number) \(news.isOpen ? "connected from \(news.remote)" : "is gone")",
            news.isOpen ? "connected" : "disconnected",
            ["connection": .integer(Int64(news.number)), "remote": .string(news.remote)])
    }
}
