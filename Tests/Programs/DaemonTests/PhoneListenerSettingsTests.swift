import Testing

@testable import Daemon

/// The group `phone` of the settings.
@Suite struct PhoneListenerSettingsTests {
    private static let needed = "origin: https://login.example.com\nlisten: 127.0.0.1:8080\nstorage: sqlite:a.db\n"
    private static let listen = "listen: 127.0.0.1:8443"
    private static let rest = ["origin: https://phone.example.com", "certificate: p.pem", "key: p.key"]

    private func read(_ lines: [String]) throws -> Settings {
        let text = Self.needed + "phone:\n" + lines.map { "  \($0)\n" }.joined()
        return try SettingsReader.read(Array(text.utf8), file: "/etc/twoefay.yaml")
    }

    @Test func listenerIsRead() throws {
        let settings = try read(
            ["listen: 127.0.0.1:8443", "origins: https://app.example.org, https://b.example:8443"] + Self.rest)
        #expect(settings.phone.listen == HostPort(host: "127.0.0.1", port: 8443))
        #expect(settings.phone.origins?.settingsText == "https://app.example.org, https://b.example:8443")
        let opened = settings.openedPaths.map(\.path)
        #expect(opened.contains("/etc/p.pem") && opened.contains("/etc/p.key"))
        #expect(settings.certificates.contains { $0.setting == "phone.certificate" })
    }

    /// Lines of the group, and the fault that is reported.
    private static let faults: [(lines: [String], message: String)] = [
        (rest, "phone.origin, certificate, key have no effect without phone.listen"),
        ([listen, rest[1], rest[2]], "phone.origin is missing, which phone.listen needs"),
        ([listen, rest[0], rest[1]], "phone.key is missing, which phone.listen needs"),
        (["listen: 127.0.0.1:8080"] + rest, "phone.listen must not be that of listen"),
        (["listen: phone.example.com:8443"] + rest, "phone.example.com is not an IP address"),
        (
            [listen, "origin: https://LOGIN.example.com:443", rest[1], rest[2]],
            "phone.origin must not be that of origin"
        ),
        (
            [listen, "origins: https://app.example.org/phone"] + rest,
            "phone.origins must be origins such as https://app.example.org, with no path"
        ),
        ([listen, "origins: ', '"] + rest, "phone.origins must be one or more origins"),
        (
            [listen, "enabled: off", "relays: https://phone.example.net"] + rest,
            "phone.relays has no effect without phone.enabled: on"
        ),
        (
            [
                listen, "ios_apps: ABCDE12345.com.example.app", "origin: https://phone.example.com:8443", rest[1],
                rest[2],
            ],
            "phone.ios_apps needs a phone.origin with port 443"
        ),
    ]

    @Test(arguments: faults) func faultsAreNamed(lines: [String], message: String) {
        let error = #expect(throws: (any Error).self) { try read(lines) }
        #expect(error.map { "\($0)" }?.contains(message) == true, "\(String(describing: error))")
    }
}
