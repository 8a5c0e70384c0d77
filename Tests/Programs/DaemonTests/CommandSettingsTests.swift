import Testing

@testable import Daemon

/// The group `phone_ca` of the settings.
@Suite struct CommandSettingsTests {
    private static let needed =
        "origin: https://login.example.com\nlisten: 127.0.0.1:8080\nstorage: sqlite:a.db\n"
    private static let service = "key_service: unix:socket\n"
    private static let command = "command: [/usr/bin/issue, --profile, \"two words\"]"

    private func read(_ text: String) throws -> Settings {
        try SettingsReader.read(Array((Self.needed + text).utf8), file: "/etc/twoefay.yaml")
    }

    @Test func commandIsRead() throws {
        let settings = try read(
            "\(Self.service)phone_ca:\n  \(Self.command)\n  timeout: 7\n  documents: on\n")
        #expect(settings.command.words == ["/usr/bin/issue", "--profile", "two words"])
        #expect(settings.command.seconds == 7 && settings.command.documents == .on)
        // The key of the authority is nowhere in the installation, and the relay does not open the
        // command.
        let opened = settings.openedPaths.map(\.path)
        #expect(!opened.contains("/etc/device-ca.key") && !opened.contains("/usr/bin/issue"))
        let text = SettingsExample.annotated(settings)
        #expect(text.contains("\n  command: [\"/usr/bin/issue\", \"--profile\", \"two words\"]\n"))
        #expect(try SettingsReader.read(Array(text.utf8), file: "/etc/twoefay.yaml").command == settings.command)
    }

    @Test(arguments: [
        ("phone_ca:\n  \(command)\n", "phone_ca.command needs key_service"),
        ("\(service)phone_ca:\n  command: /usr/bin/issue\n", "phone_ca.command must be a list"),
        ("\(service)phone_ca:\n  command: []\n", "phone_ca.command must be a list"),
        ("\(service)phone_ca:\n  command: [/usr/bin/issue, [a]]\n", "phone_ca.command must be a list of texts"),
        ("\(service)phone_ca:\n  command: [issue]\n", "must begin with the absolute path"),
        ("\(service)phone_ca:\n  \(command)\n  timeout: 8\n", "phone_ca.timeout must be a whole number from 1 to 7"),
        ("\(service)phone_ca:\n  \(command)\n  documents: yes\n", "phone_ca.documents must be one of on, off"),
        ("phone_ca:\n  timeout: 5\n", "phone_ca.timeout has no effect without phone_ca.command"),
        (
            "\(service)phone_ca:\n  \(command)\nest:\n  url: https://est.example.com/est\n  ca: a\n  username: b\n"
                + "  password_file: c\n", "phone_ca.command and est.url exclude each other"
        ),
        (
            "\(service)phone_ca:\n  \(command)\npkcs11:\n  module: /a.so\n  token: a\n  key: b\n  pin_file: c\n",
            "phone_ca.command and pkcs11.module exclude each other"
        ),
    ])
    func wrongGroupIsReported(text: String, message: String) {
        do {
            _ = try read(text)
            Issue.record("\(text)")
        } catch {
            #expect("\(error)".contains(message), "\(error)")
        }
    }
}
