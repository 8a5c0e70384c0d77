import Daemon
import EventLoop
import FakeAPNs
import JSON

extension Tool {
    static let fakeAPNs = Subcommand(
        command: Command(
            "fake-apns", "Runs a push service in place of Apple's, for tests: it does to pushes what you say.",
            options: [
                .init("listen", .one("HOST:PORT"), "Where it listens; 127.0.0.1:2197 if left out, port 0 for any."),
                .init(
                    "host", .many("NAME"),
                    "Further names and addresses for its certificate, the first one for the settings to paste."),
                .init("topic", .one("TOPIC"), "The app that pushes are for; com.example.twoefay if left out."),
                .init(
                    "directory", .one("DIR"),
                    "Where the throw-away team is kept, made if it is not there; fake-apns if left out."),
                .init("control", .one("FILE"), "What pushes and connections get; read again when it changes."),
                .init("certificate", .nothing, "Print settings for a relay that shows a certificate, not tokens."),
                .init("example", .nothing, "Print a control file that explains itself, and do nothing."),
            ],
            notes: """
                At first it prints what stands under push.apns in the relay's settings, then a line for every request and
                what it gets. Without --control it accepts every right push. Ctrl-C ends it.
                With --json it prints a line for everything that happens: listening, connected, request, disconnected,
                control, trouble, ended. docs/phones/fake-apns.md walks through it.
                  twoefay fake-apns --example > control.yaml
                  twoefay fake-apns --control control.yaml
                """)
    ) { invocation throws(Failure) in
        if invocation.has("example") {
            return Report(String(Control.example.dropLast()), json: .object(["example": .string(Control.example)]))
        }
        let wish = try FakeService.Options(invocation)
        let signals: Signals
        do throws(SystemFailure) {
            signals = try Signals()
        } catch {
            throw Failure(.failed, error.description, next: "The machine is out of threads.")
        }
        return try onLoop { loop throws(Failure) in
            let service = try FakeService(wish, loop: loop, telling: PhoneOutput(invocation))
            return try await service.run(until: signals)
        }
    }
}

extension FakeService.Options {
    init(_ invocation: Invocation) throws(Failure) {
        do throws(SettingsFault) {
            listen = try HostPort(settingsText: invocation.value("listen") ?? "127.0.0.1:2197")
        } catch {
            throw Failure(
                .usage, "--listen \(error.message)", next: "Run 'twoefay fake-apns --help' for what it takes.")
        }
        hosts = invocation.values("host")
        topic = invocation.value("topic") ?? "com.example.twoefay"
        directory = invocation.value("directory") ?? "fake-apns"
        control = invocation.value("control")
        showsCertificate = invocation.has("certificate")
    }
}
