import CLinux
import Commands
import Daemon
import EventLoop
import Glibc
import HTTP
import HTTP1
import JSON
import Log
import TwoefayClient
import World

/// A sidecar: it holds a website's certificate, and passes requests of local programs on to the
/// relay, until a signal stops it. It is used only on its loop.
///
/// It repeats a request for a short time if that has no second effect: any request that the relay
/// has certainly not processed, and after a lost answer a GET (RFC 9110 §9.2.1) or a POST with an
/// `Idempotency-Key`. DELETE and PATCH are idempotent, too, but their second answer differs, so the
/// caller decides about them.
///
/// Tests: `ConnectTests`, `ConnectFaultTests`, `SidecarRefusalTests`.
final class Sidecar {
    struct Options: Sendable {
        let relay: WebAddress
        let authority: String
        let certificate: String
        let key: String
        let socket: String?
        /// The group that may use the socket; nil if only this account may.
        let group: (name: String, number: gid_t)?
        let listen: SocketAddress?
        let tokenFile: String?

        fileprivate var files: [String] { [authority, certificate, key] + (tokenFile.map { [$0] } ?? []) }
        var mode: mode_t { group == nil ? 0o600 : 0o660 }
    }

    /// The time for attempts after the first one. A relay that restarts is back by then.
    private static let patience = Duration.seconds(5)
    /// The time for one answer. The relay holds a request for at most a minute.
    private static let deadline = Duration.seconds(90)

    private let options: Options
    private let loop: EventLoop
    private let output: PhoneOutput
    /// The connections to the relay, under the certificate in force.
    private var carrier: HTTP2Carrier
    private var files: SidecarFiles
    private var marks: [FileMark]
    /// Whether the relay could be reached; nil before the first attempt.
    private var isReachable: Bool?
    private var answered = 0
    private var isEnded = false

    init(_ options: Options, loop: EventLoop, output: PhoneOutput) throws(Failure) {
        self.options = options
        self.loop = loop
        self.output = output
        marks = options.files.map { FileMark($0) }
        files = try SidecarFiles(options, at: loop.time.now())
        carrier = try Self.carrier(options.relay, files, on: loop)
    }

    private static func carrier(
        _ relay: WebAddress, _ files: SidecarFiles, on loop: EventLoop
    ) throws(Failure) -> HTTP2Carrier {
        do throws(CallFault) {
            return try HTTP2Carrier(
                loop: loop, relay: relay, authority: files.authority, certificate: files.certificate, key: files.key)
        } catch {
            throw Failure(
                .failed, error.description,
                next: "Give the files of one certificate: NAME.pem and NAME.key of 'twoefay website add', and the "
                    + "relay's ca.pem.")
        }
    }

    func run(until signals: Signals, _ supervisor: Supervisor) async throws(Failure) -> Report {
        let shared = LoopBound(self, on: loop)
        let servers = try listen(shared)
        printListening(port: servers.tcp?.port)
        loop.spawn { await shared.value.greet() }
        loop.spawn { await shared.value.watchFiles() }
        supervisor.ready("Offers the routes of the website \(files.website).")
        while case .reload = await signals.next() { reload() }
        supervisor.stopping()
        isEnded = true
        servers.file?.remove()
        servers.unix?.stop()
        servers.tcp?.stop()
        return Report(
            "\(counted(answered, "request")) answered.",
            json: .object(["event": "ended", "answered": .integer(Int64(answered))]))
    }

    // MARK: Listening

    private struct Servers {
        var tcp: HTTP1Server?
        var unix: HTTP1Server?
        var file: ProtectedSocket?
    }

    private static let limits = {
        var limits = PageLimits()
        // Sockets of two listeners and of the relay, within the 1024 files that a process may usually
        // open.
        limits.connections = 400
        limits.timeout = .seconds(60)
        limits.answer = .seconds(120)
        return limits
    }()

    private func listen(_ shared: LoopBound<Sidecar>) throws(Failure) -> Servers {
        var servers = Servers()
        let log = Log(minimum: .error)
        if let address = options.listen {
            do throws(SystemFailure) {
                let tcp = try HTTP1Server(
                    loop: loop, address: address, pages: SidecarPages(sidecar: shared, requiresToken: true),
                    limits: Self.limits, log: log)
                try tcp.start()
                servers.tcp = tcp
            } catch {
                throw Failure(
                    .unavailable, "cannot listen on \(address): \(error)",
                    next: "Choose another port with --listen, or stop the program that uses it.")
            }
        }
        if let path = options.socket {
            try makeDirectory(Files.directory(of: path))
            let file = try ProtectedSocket.open(
                path, mode: options.mode, group: options.group?.number, name: "--socket")
            do throws(SystemFailure) {
                let unix = try HTTP1Server(
                    loop: loop, socket: try ListeningSocket(unix: file.fd),
                    pages: SidecarPages(sidecar: shared, requiresToken: false), limits: Self.limits, log: log)
                try unix.start()
                (servers.unix, servers.file) = (unix, file)
            } catch {
                file.remove()
                throw Failure(
                    .unavailable, "cannot listen at \(path): \(error)",
                    next: "The machine is out of memory or file descriptors.")
            }
        }
        return servers
    }

    /// Creates the directory of the socket if it does not exist. A volume that containers share is
    /// often writable for all of them, so the socket needs a directory of its own in it.
    private func makeDirectory(_ path: String) throws(Failure) {
        do throws(Files.Problem) {
            guard try Files.makeDirectory(path, mode: 0o700), let group = options.group else { return }
            // A path could lead to another directory by now, if others may write to the one above.
            // A descriptor stays with the one that is checked.
            let directory = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            defer { if directory >= 0 { close(directory) } }
            var state = stat()
            guard directory >= 0, fstat(directory, &state) == 0, state.st_uid == geteuid(),
                state.st_mode & 0o777 == 0o700
            else {
                throw Files.Problem(path, "was replaced by another one")
            }
            guard fchown(directory, uid_t.max, group.number) == 0, fchmod(directory, 0o750) == 0 else {
                let reason = String(cString: strerror(errno))
                Files.removeDirectory(path)
                throw Files.Problem(path, reason)
            }
        } catch {
            throw Failure(
                .failed, "--socket: the directory \(error.text)",
                next: "Make the directory, writable for this account alone, or choose another path.")
        }
    }

    private func printListening(port: UInt16?) {
        let ends = files.certificateEnds.rfc3339
        var places: [String] = []
        var example = ""
        if let socket = options.socket {
            let who = options.group.map { "the group \($0.name)" } ?? "this account alone"
            places.append("\(socket) for \(who)")
            example = "curl --unix-socket \(socket) http://localhost/health"
        }
        if let port, let address = options.listen, let file = options.tokenFile {
            let place = WebAddress(secure: false, host: address.host, port: port).text
            places.append("\(place) with the token in \(file)")
            // Not as an argument of curl, which every account of the machine can read.
            if example.isEmpty {
                example =
                    "printf 'header = \"Authorization: Bearer %s\"\\n' \"$(cat \(file))\" | curl -K - \(place)/health"
            }
        }
        var members: JSONObject = [
            "website": .string(files.website), "relay": .string(options.relay.text),
            "certificate_ends": .string(ends),
        ]
        if let socket = options.socket { members.set("socket", .string(socket)) }
        if let port { members.set("port", .integer(Int64(port))) }
        output(
            """
            The website \(files.website) calls \(options.relay.text) through
              \(places.joined(separator: "\n  "))
            Its certificate ends at \(ends). To try it:
              \(example)
            SIGHUP reads the files again, and Ctrl-C ends it.

            """, "listening", members)
    }

    // MARK: Files

    /// Looks at the files once a second. Certificate and key are replaced one after the other, so
    /// they are read when they have not changed since the last look.
    private func watchFiles() async {
        var seen = marks
        while !isEnded {
            await loop.sleep(for: .seconds(1))
            let now = options.files.map { FileMark($0) }
            if now != marks, now == seen { reload() }
            seen = now
        }
    }

    /// Reads the files again. After a failure, the former contents stay in force, and requests under
    /// way end with them in any case.
    private func reload() {
        // The marks are taken first, so that a write during the read is detected at the next look.
        marks = options.files.map { FileMark($0) }
        do throws(Failure) {
            let read = try SidecarFiles(options, at: loop.time.now())
            guard read.website == files.website else {
                throw Failure(
                    .failed, "the certificate is of the website \(read.website), not of \(files.website)",
                    next: "To serve another website, start another sidecar with a socket of its own.")
            }
            // Requests under way keep the former one until they end.
            carrier = try Self.carrier(options.relay, read, on: loop)
            files = read
            output(
                "The files are read again. The certificate ends at \(read.certificateEnds.rfc3339).", "reloaded",
                ["website": .string(read.website), "certificate_ends": .string(read.certificateEnds.rfc3339)])
        } catch {
            output(
                "\(error.message)\n\(error.next)\nThe former files stay in use.", "trouble",
                ["error": .string(error.message), "next": .string(error.next)])
        }
    }

    // MARK: Requests

    func admits(_ authorization: [String]) -> Bool { files.token?.matches(authorization) ?? false }

    func answer(_ request: Request) async -> Response {
        defer { answered += 1 }
        let end = loop.time.instant() + Self.patience
        var pause = Duration.milliseconds(100)
        var isRepeated = false
        while true {
            do throws(CallFault) {
                let response = try await send(request, deadline: Self.deadline)
                note(nil)
                if isRepeated, Self.isStillRunning(response), loop.time.instant() + pause < end {
                    await carrier.pause(for: max(pause, .seconds(1)))
                    continue
                }
                return Response(
                    status: response.status, fields: PassedFields.ofResponse(response.fields), body: response.body)
            } catch {
                // While the relay is known to be away, no further caller waits for it.
                guard isReachable != false, Self.mayRepeat(request, after: error), loop.time.instant() + pause < end
                else { return failed(error) }
                if case .unanswered = error { isRepeated = true }
                await carrier.pause(for: pause)
                pause = min(pause * 2, .milliseconds(500))
            }
        }
    }

    private func send(_ request: Request, deadline: Duration) async throws(CallFault) -> Response {
        try await carrier.send(
            request.method, request.path + (request.query.map { "?\($0)" } ?? ""),
            fields: PassedFields.ofRequest(request.fields), body: request.body, deadline: deadline)
    }

    /// Whether the relay still works on an earlier attempt. If that was the sidecar's, the caller knows
    /// nothing of it, and waits for the answer.
    static func isStillRunning(_ response: Response) -> Bool {
        response.status == 409 && response.fields["retry-after"] != nil
    }

    static func mayRepeat(_ request: Request, after fault: CallFault) -> Bool {
        switch fault {
        case .unreached: true
        case .unanswered:
            request.method == "GET" || request.method == "POST" && request.fields["idempotency-key"] != nil
        case .refused, .odd, .cancelled, .unable: false
        }
    }

    private func failed(_ fault: CallFault) -> Response {
        switch fault {
        case .unreached(let reason):
            note(reason)
            return SidecarProblem.unreachable.response(
                "\(options.relay.text): \(reason). The relay has not processed the request.")
        case .unanswered(let reason):
            return SidecarProblem.unanswered.response(
                "\(options.relay.text): \(reason). The relay may have processed the request.")
        // A caller that has left reads no answer, and the others do not occur here.
        case .refused, .odd, .cancelled, .unable: return SidecarProblem.unanswered.response(fault.description)
        }
    }

    /// Connects before the first caller comes, and reports whether the relay answers.
    private func greet() async {
        do throws(CallFault) {
            _ = try await send(Request(method: "GET", path: "/health"), deadline: Self.patience)
            note(nil)
        } catch {
            _ = failed(error)
        }
    }

    /// Reports when the relay becomes reachable or unreachable.
    private func note(_ fault: String?) {
        guard isReachable != (fault == nil) else { return }
        isReachable = fault == nil
        if let fault {
            output("The relay is not reachable: \(fault)", "unreachable", ["error": .string(fault)])
        } else {
            output("The relay answers.", "reachable")
        }
    }
}
