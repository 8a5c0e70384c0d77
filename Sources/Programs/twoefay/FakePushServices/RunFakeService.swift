import Commands
import Daemon
import EventLoop
import FakePushServices
import JSON

extension Tool {
    static let fakeAPNs = Subcommand(
        command: Command(
            "fake-apns", "Runs a push service in place of Apple's, for tests, with faults of your choice.",
            options: [
                .init("listen", .one("HOST:PORT"), "The address (default: 127.0.0.1:2197). Port 0 is any free port."),
                .init(
                    "host", .many("NAME"),
                    "Further names and addresses for its certificate; the first is printed in the settings."),
                .init("topic", .one("TOPIC"), "The topic of the app (default: com.example.twoefay)."),
                .init(
                    "directory", .one("DIR"),
                    "The directory of the test team; created if it does not exist (default: fake-apns)."),
                .init("control", .one("FILE"), "The answers for pushes and connections; read again when it changes."),
                .init("certificate", .nothing, "Print settings for a relay that uses a certificate instead of tokens."),
                .init("example", .nothing, "Print a control file with explanations, and exit."),
            ],
            notes: """
                It first prints the settings for push.apns of the relay, then one line for each request and its answer.
                Without --control, it accepts every valid push. Ctrl-C ends it.
                With --json, it prints one line for each event: listening, connected, request, disconnected, control,
                trouble, ended. See docs/phones/fake-apns.md.
                  twoefay fake-apns --example > control.yaml
                  twoefay fake-apns --control control.yaml
                """)
    ) { invocation throws(Failure) in try runFakeService(.apns, invocation) }

    static let fakeFCM = Subcommand(
        command: Command(
            "fake-fcm", "Runs a push service in place of Google's (FCM), for tests, with faults of your choice.",
            options: [
                .init("listen", .one("HOST:PORT"), "The address (default: 127.0.0.1:2198). Port 0 is any free port."),
                .init(
                    "host", .many("NAME"),
                    "Further names and addresses for its certificate; the first is printed in the settings."),
                .init(
                    "directory", .one("DIR"),
                    "The directory of the test project; created if it does not exist (default: fake-fcm)."),
                .init("control", .one("FILE"), "The answers for pushes and connections; read again when it changes."),
                .init("example", .nothing, "Print a control file with explanations, and exit."),
            ],
            notes: """
                It first prints the settings for push.fcm of the relay, then one line for each request and its answer.
                It also issues the access tokens. Without --control, it accepts every valid push. Ctrl-C ends it.
                With --json, it prints one line for each event, as fake-apns does. See docs/phones/fake-fcm.md.
                  twoefay fake-fcm --example > control.yaml
                  twoefay fake-fcm --control control.yaml
                """)
    ) { invocation throws(Failure) in try runFakeService(.fcm, invocation) }

    private static func runFakeService(
        _ kind: FakeServiceKind, _ invocation: Invocation
    ) throws(Failure) -> Report {
        if invocation.has("example") {
            let example = kind == .apns ? Control.example : Control.fcmExample
            return Report(String(example.dropLast()), json: .object(["example": .string(example)]))
        }
        let options = try FakeService.Options(kind, invocation)
        let signals: Signals
        do throws(SystemFailure) {
            signals = try Signals()
        } catch {
            throw Failure(.failed, error.description, next: "The machine is out of threads.")
        }
        return try onLoop { loop throws(Failure) in
            let service = try FakeService(options, loop: loop, output: PhoneOutput(invocation))
            return try await service.run(until: signals)
        }
    }
}

extension FakeService.Options {
    init(_ kind: FakeServiceKind, _ invocation: Invocation) throws(Failure) {
        self.kind = kind
        do throws(SettingsFault) {
            listen = try HostPort(
                settingsText: invocation.value("listen") ?? (kind == .apns ? "127.0.0.1:2197" : "127.0.0.1:2198"))
        } catch {
            throw Failure(
                .usage, "--listen \(error.message)", next: "Run 'twoefay \(kind.command) --help' for usage.")
        }
        hosts = invocation.values("host")
        topic = (kind == .apns ? invocation.value("topic") : nil) ?? "com.example.twoefay"
        directory = invocation.value("directory") ?? kind.command
        control = invocation.value("control")
        showsCertificate = kind == .apns && invocation.has("certificate")
    }
}
