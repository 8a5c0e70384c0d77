import GSM
import Glibc
import TestSupport

/// A Kannel with one gateway over SMPP, so that its SMPP client uses the test gateway.
final class KannelSender {
    private let directory: TemporaryDirectory
    private let ports: [FreePort]
    private let bearerbox: Child
    private let smsbox: Child

    /// - Parameter port: the port of the gateway.
    init(gateway port: UInt16) async throws {
        directory = try TemporaryDirectory()
        ports = try (0..<3).map { _ in try FreePort() }
        let file = directory("kannel.conf")
        try TextFile.write(Self.settings(ports.map(\.port), gateway: port), to: file)
        // Installed in a directory that is usually only in root's PATH.
        bearerbox = try Child("/usr/sbin/bearerbox", [file])
        _ = try await bearerbox.line(.errors, with: "MAIN: Start-up done")
        smsbox = try Child("/usr/sbin/smsbox", [file])
        _ = try await bearerbox.line(.errors, with: "Client connected from")
        _ = try await smsbox.line(.errors, with: "Connected to bearerbox")
    }

    /// Sends a text. Kannel does not detect by itself that a text needs UCS-2.
    func send(_ text: String, to number: String) async throws -> String {
        let coding = TextSize(text).coding == .gsm7 ? 0 : 2
        let url = "http://127.0.0.1:\(ports[2].port)/cgi-bin/sendsms"
        let fields = [
            "username=u", "password=p", "from=Shop", "to=\(number)", "text=\(text)", "charset=UTF-8",
            "coding=\(coding)",
            // Requests receipts for delivery and for failure.
            "dlr-mask=3", "dlr-url=http://127.0.0.1:9/",
        ]
        let answer = try await Child.run(
            "curl",
            ["--silent", "--retry", "5", "--retry-connrefused", "--get", url]
                + fields.flatMap { ["--data-urlencode", $0] })
        return answer.output
    }

    func stop() async {
        smsbox.signal(SIGTERM)
        _ = await smsbox.ended()
        bearerbox.signal(SIGTERM)
        _ = await bearerbox.ended()
    }

    private static func settings(_ ports: [UInt16], gateway: UInt16) -> String {
        """
        group = core
        admin-port = \(ports[0])
        admin-password = x
        admin-interface = "127.0.0.1"
        smsbox-port = \(ports[1])
        smsbox-interface = "127.0.0.1"
        dlr-storage = internal
        log-level = 0

        group = smsc
        smsc = smpp
        smsc-id = gateway
        interface-version = 34
        host = 127.0.0.1
        port = \(gateway)
        transceiver-mode = true
        smsc-username = relay
        smsc-password = secret08
        system-type = login
        enquire-link-interval = 1

        group = smsbox
        bearerbox-host = 127.0.0.1
        sendsms-port = \(ports[2])
        sendsms-interface = "127.0.0.1"
        log-level = 0

        group = sendsms-user
        username = u
        password = p
        concatenation = true
        max-messages = 10

        """
    }
}
