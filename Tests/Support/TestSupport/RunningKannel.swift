import Glibc

/// Kannel (Debian's kannel and kannel-extras): its bearerbox and smsbox, and its fake SMS centre,
/// which logs the messages that it receives.
public final class RunningKannel: Sendable {
    public static let username = "tester"
    public static let password = "foobar"

    /// A message that arrived at the fake centre.
    public struct Arrived: Sendable, Equatable {
        public let from: String
        public let to: String
        /// The coding, `text` or `ucs-2`.
        public let coding: String
        public let text: String
    }

    private let bearerbox: Child
    private let smsbox: Child
    private let fake: Child
    private let directory: TemporaryDirectory
    private let ports: [FreePort]
    /// The URL of `sendsms`.
    public let url: String

    /// Returns true if Kannel is installed.
    public static var isInstalled: Bool {
        ["/usr/sbin/bearerbox", "/usr/sbin/smsbox", fakeProgram].allSatisfy { (path: String) in access(path, X_OK) == 0
        }
    }

    private static let fakeProgram = "/usr/lib/kannel/test/fakesmsc"

    /// Starts Kannel.
    ///
    /// - Parameter more: further groups of its configuration, such as a `group = smsc` with another
    ///   centre. The `smsc-id` of the fake centre is `fake`.
    public init(more: String = "") async throws {
        directory = try TemporaryDirectory()
        ports = try (0..<4).map { _ in try FreePort() }
        let (admin, boxes, centre, sendsms) = (ports[0].port, ports[1].port, ports[2].port, ports[3].port)
        url = "http://127.0.0.1:\(sendsms)/cgi-bin/sendsms"
        let configuration = directory("kannel.conf")
        try TextFile.write(
            """
            group = core
            admin-port = \(admin)
            admin-password = admin
            admin-allow-ip = "127.0.0.1"
            box-allow-ip = "127.0.0.1"
            smsbox-port = \(boxes)
            log-level = 0

            group = smsc
            smsc = fake
            smsc-id = fake
            port = \(centre)
            connect-allow-ip = 127.0.0.1

            \(more)

            group = smsbox
            bearerbox-host = 127.0.0.1
            sendsms-port = \(sendsms)
            global-sender = 13013

            group = sendsms-user
            username = \(Self.username)
            password = \(Self.password)
            max-messages = 5
            concatenation = true

            group = sms-service
            keyword = default
            max-messages = 0
            text = ""

            """, to: configuration)
        bearerbox = try Child("/usr/sbin/bearerbox", [configuration])
        _ = try await bearerbox.line(.errors, with: "Start-up done")
        fake = try Child(
            Self.fakeProgram, ["-H", "127.0.0.1", "-r", "\(centre)", "-i", "1", "-m", "0", "1 2 text nothing"])
        _ = try await bearerbox.line(.errors, with: "Fakesmsc client connected")
        smsbox = try Child("/usr/sbin/smsbox", [configuration])
        _ = try await smsbox.line(.errors, with: "Connected to bearerbox")
        _ = try await bearerbox.line(.errors, with: "Client connected from")
    }

    /// The bearerbox ends last, because the others would log errors without it.
    deinit {
        for child in [smsbox, fake, bearerbox] { child.signal(SIGKILL) }
    }

    /// Returns the message with this number when it has arrived.
    public func arrived(_ number: Int) async throws -> Arrived {
        let line = try await fake.line(.errors, with: "Got message \(number): <")
        let words = line.drop { $0 != "<" }.dropFirst().dropLast().split(separator: " ", maxSplits: 3)
        guard words.count == 4 else { throw Child.Problem(description: "fakesmsc wrote \(line)") }
        let coding = String(words[2])
        let text = coding == "ucs-2" ? try Self.decoded(words[3]) : String(words[3])
        return Arrived(from: String(words[0]), to: String(words[1]), coding: coding, text: text)
    }

    /// Waits for a line in the bearerbox's log.
    public func bearerboxSays(_ part: String) async throws -> String { try await bearerbox.line(.errors, with: part) }

    /// Decodes percent-encoded UTF-16.
    private static func decoded(_ text: Substring) throws -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte == UInt8(ascii: "+") ? 0x20 : byte)
            }
        }
        guard bytes.count.isMultiple(of: 2) else { throw Child.Problem(description: "half a character: \(text)") }
        let units = stride(from: 0, to: bytes.count, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
        return String(decoding: units, as: UTF16.self)
    }
}
