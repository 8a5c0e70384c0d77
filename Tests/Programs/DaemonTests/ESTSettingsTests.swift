import Testing

@testable import Daemon

/// The group `est` of the settings.
@Suite struct ESTSettingsTests {
    private static let needed = "origin: https://login.example.com\nlisten: 127.0.0.1:8080\nstorage: sqlite:a.db\n"
    private static let url = "url: https://est.example.com/.well-known/est/phones"

    private func read(_ text: String) throws -> Settings {
        try SettingsReader.read(Array((Self.needed + text).utf8), file: "/etc/twoefay.yaml")
    }

    private func problems(_ lines: [String]) -> String {
        do {
            _ = try read("est:\n" + lines.map { "  \($0)\n" }.joined())
            return ""
        } catch {
            return "\(error)"
        }
    }

    @Test func serverIsRead() throws {
        let settings = try read(
            "est:\n  \(Self.url)\n  ca: est.pem\n  username: relay\n  password_file: est.password\n")
        #expect(settings.est.url?.settingsText == "https://est.example.com/.well-known/est/phones")
        let opened = settings.openedPaths.map(\.path)
        #expect(opened.contains("/etc/est.pem") && opened.contains("/etc/est.password"))
        // The key of the authority is nowhere in the installation.
        #expect(!opened.contains("/etc/device-ca.key") && opened.contains("/etc/device-ca.pem"))
    }

    @Test(arguments: [
        ([url, "username: a", "password_file: b"], "est.ca is missing"),
        ([url, "ca: a"], "est needs username and password_file, or certificate and key"),
        ([url, "ca: a", "username: b"], "est.username and est.password_file must be set together"),
        ([url, "ca: a", "certificate: b"], "est.certificate and est.key must be set together"),
        ([url, "ca: a", "username: \"b:c\"", "password_file: d"], "est.username must not have a colon"),
        (["ca: a", "username: b"], "est.ca, username have no effect without est.url"),
        (["url: http://est.example.com/est"], "est.url must be an https: URL"),
        (["url: https://est.example.com/est/"], "est.url must be an https: URL"),
        (["url: https://est.example.com/est?a=b"], "est.url must be an https: URL"),
    ])
    func wrongGroupIsReported(lines: [String], message: String) {
        let found = problems(lines)
        #expect(found.contains(message), "\(found)")
    }
}
