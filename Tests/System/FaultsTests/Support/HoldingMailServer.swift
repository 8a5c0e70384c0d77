import Glibc
import JSON
import TestSupport
import Testing

/// A mail server (aiosmtpd) that stops once at one step of a mail. The beginning of the recipient's address names
/// the step: `envelope-` and `dying-` before it answers to the recipient, `content-` before it requests the
/// content, `taken-` and `unstored-` when it has the mail and has not confirmed it. The domain gone.example.org has
/// no mailboxes.
final class HoldingMailServer: Sendable {
    struct Mail: Sendable {
        let to: String
        let id: String
        /// The code in the mail; nil if it has none.
        let code: String?
    }

    let port: UInt16
    private let child: Child

    static func start() async throws -> HoldingMailServer {
        let child = try Child("/usr/bin/python3", ["-c", script])
        let line = try await child.line(.output, with: "port ")
        return HoldingMailServer(try #require(UInt16(line.dropFirst(5))), child)
    }

    private init(_ port: UInt16, _ child: Child) {
        self.port = port
        self.child = child
    }

    deinit { child.signal(SIGKILL) }

    /// Stops the server: connections are accepted without a greeting.
    func freeze() { child.signal(SIGSTOP) }
    func thaw() { child.signal(SIGCONT) }

    /// Waits until the server has stopped at the step of this address.
    func holds(_ address: String) async throws { _ = try await child.line(.output, with: "held \(address)") }

    /// Lets the server continue wherever it has stopped. When this returns, `mails` has all mails that it had
    /// accepted.
    func release() async throws {
        let before = child.written.output.split(separator: "\n").count { $0 == "released" }
        child.signal(SIGUSR1)
        _ = try await child.line(.output, with: "released", number: before + 1)
    }

    /// The accepted mails, in order.
    var mails: [Mail] {
        child.written.output.split(separator: "\n").filter { $0.hasPrefix("mail ") }.compactMap { line in
            guard let mail = try? JSONReader.read(Array(line.utf8.dropFirst(5))).object else { return nil }
            let lines = (mail["data"]?.string ?? "").split(separator: "\r\n")
            let id = lines.first { $0.lowercased().hasPrefix("message-id:") }
            let code = lines.first { $0.utf8.count == 6 && $0.utf8.allSatisfy { (48...57).contains($0) } }
            return Mail(
                to: mail["to"]?.string ?? "", id: id.map { String($0.dropFirst(12)) } ?? "none",
                code: code.map(String.init))
        }
    }

    private static let script = """
        import asyncio, json, signal
        from aiosmtpd.smtp import SMTP
        waiting, met = [], set()

        def tell(*words):
            print(*words, flush=True)

        def release():
            tell("released")
            while waiting:
                waiting.pop().set()

        async def step(names, address):
            if address.split("-")[0] in names and address not in met:
                met.add(address)
                go = asyncio.Event()
                waiting.append(go)
                tell("held", address)
                await go.wait()

        class Handler:
            async def handle_RCPT(self, server, session, envelope, address, options):
                await step(["envelope", "dying"], address)
                if address.endswith("@gone.example.org"):
                    return "550 5.1.1 nobody here is called that"
                envelope.rcpt_tos.append(address)
                return "250 2.1.5 fine"

            async def handle_DATA(self, server, session, envelope):
                to = envelope.rcpt_tos[0]
                tell("mail", json.dumps({"to": to, "data": envelope.content.decode()}))
                await step(["taken", "unstored"], to)
                return "250 2.0.0 queued"

        class Server(SMTP):
            async def smtp_DATA(self, argument):
                for to in self.envelope.rcpt_tos:
                    await step(["content"], to)
                await super().smtp_DATA(argument)

        async def main():
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGUSR1, release)
            server = await loop.create_server(lambda: Server(Handler(), hostname="mail.example.org"), "127.0.0.1", 0)
            tell("port", server.sockets[0].getsockname()[1])
            await server.serve_forever()

        asyncio.run(main())
        """
}
