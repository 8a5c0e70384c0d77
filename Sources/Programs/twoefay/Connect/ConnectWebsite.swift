import Commands
import Daemon
import EventLoop
import Glibc
import HTTP

extension Tool {
    static let connect = Subcommand(
        command: Command(
            "connect", "Holds a website's certificate, and offers the routes to programs on this machine.",
            options: [
                .init("relay", .one("ORIGIN"), "The origin of the relay, such as https://login.example.com:8080."),
                .init("certificate", .one("FILE"), "The website's certificate, NAME.pem of 'website add'."),
                .init("key", .one("FILE"), "Its private key (default: the certificate's name with .key)."),
                .init(
                    "authority", .one("FILE"),
                    "The authority of the relay's certificate (default: ca.pem beside the certificate)."),
                .init("socket", .one("PATH"), "The Unix socket. Its directory is created if it does not exist."),
                .init(
                    "group", .one("GROUP"),
                    "The group that may use the socket, as name or number (default: only this account)."),
                .init("listen", .one("HOST:PORT"), "A loopback address. Port 0 is any free port."),
                .init(
                    "token-file", .one("FILE"),
                    "The token that callers of --listen must send; a file that only this account can read."),
            ],
            notes: """
                Any HTTP client of the website can then call the relay, without TLS, HTTP/2 and certificates:
                  curl --unix-socket /run/twoefay/shop.sock http://localhost/login --json '{"username": "ada"}'
                It needs --socket, or --listen with --token-file, or all of them. It runs until Ctrl-C. SIGHUP reads the
                files again; it also notices when they change. See docs/websites/connect.md.
                With --json, it prints one line for each event: listening, reachable, unreachable, reloaded, trouble,
                ended.
                """)
    ) { invocation throws(Failure) in
        let options = try Sidecar.Options(invocation)
        // Both read or change what all threads share, so they come before any thread.
        let supervisor = Supervisor.connect()
        let signals: Signals
        do throws(SystemFailure) {
            signals = try Signals()
        } catch {
            throw Failure(.failed, error.description, next: "The machine is out of threads.")
        }
        return try onLoop { loop throws(Failure) in
            let sidecar = try Sidecar(options, loop: loop, output: PhoneOutput(invocation))
            return try await sidecar.run(until: signals, supervisor)
        }
    }
}

extension Sidecar.Options {
    private static let usage = "Run 'twoefay connect --help' for usage."

    init(_ invocation: Invocation) throws(Failure) {
        guard let origin = invocation.value("relay"), let file = invocation.value("certificate") else {
            throw Failure(.usage, "--relay and --certificate must be given", next: Self.usage)
        }
        guard let relay = WebAddress(origin) else {
            throw Failure(
                .usage, "--relay must be https://HOST or https://HOST:PORT, not \(origin)",
                next: "Give the origin of the relay as in its settings, without a path.")
        }
        self.relay = relay
        certificate = file
        let name = file.hasSuffix(".pem") ? String(file.dropLast(4)) : file
        key = invocation.value("key") ?? name + ".key"
        let directory = Files.directory(of: file)
        authority = invocation.value("authority") ?? Files.resolve("ca.pem", in: directory == "." ? "" : directory)
        socket = invocation.value("socket")
        group = try invocation.value("group").map { name throws(Failure) in
            // The last number means "unchanged" to the system.
            guard let number = SystemGroup.number(of: name), number != gid_t.max else {
                throw Failure(
                    .usage, "--group: there is no group \(name)",
                    next: "Make it with 'addgroup \(name)', or correct the name.")
            }
            return (name, number)
        }
        listen = try invocation.value("listen").map { text throws(Failure) in try Self.address(text) }
        tokenFile = invocation.value("token-file")
        try check()
    }

    private func check() throws(Failure) {
        let problem: String? =
            if socket == nil, listen == nil {
                "--socket or --listen must be given"
            } else if socket == nil, group != nil {
                "--group is for --socket"
            } else if (listen == nil) != (tokenFile == nil) {
                "--listen and --token-file must be given together: every account of the machine can connect"
            } else {
                nil
            }
        if let problem { throw Failure(.usage, problem, next: Self.usage) }
    }

    private static func address(_ text: String) throws(Failure) -> SocketAddress {
        let place: HostPort
        do throws(SettingsFault) {
            place = try HostPort(settingsText: text)
        } catch {
            throw Failure(.usage, "--listen \(error.message)", next: usage)
        }
        guard let address = SocketAddress(host: place.host, port: place.port), address.isLoopback else {
            throw Failure(
                .usage, "--listen \(text) is not a loopback address",
                next: "Give 127.0.0.1 or [::1] with a port. Containers share the socket of --socket in a volume.")
        }
        return address
    }
}
