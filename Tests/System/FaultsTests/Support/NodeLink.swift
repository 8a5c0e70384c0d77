import Glibc
import TestSupport
import Testing

/// A proxy between a relay and its nodes that can be cut like a cable: connections stay open, and no bytes pass.
/// Bytes in transit arrive after the repair.
final class NodeLink: Sendable {
    /// The ports at which the relay reaches the nodes, in their order.
    let ports: [UInt16]
    private let child: Child
    private let reaper: ProcessReaper

    init(to nodes: [UInt16]) async throws {
        child = try Child("/usr/bin/python3", ["-c", Self.script] + nodes.map(String.init))
        reaper = try ProcessReaper(of: child.pid)
        let line = try await child.line(.output, with: "ports ")
        ports = line.split(separator: " ").compactMap { UInt16($0) }
    }

    deinit {
        child.signal(SIGKILL)
        reaper.dismiss()
    }

    func cut() { child.signal(SIGSTOP) }
    func mend() { child.signal(SIGCONT) }

    private static let script = """
        import asyncio, sys
        async def pump(reader, writer):
            try:
                while data := await reader.read(65536):
                    writer.write(data)
                    await writer.drain()
            except OSError:
                pass
            writer.close()
        def led_to(node):
            async def join(reader, writer):
                try:
                    there, back = await asyncio.open_connection("127.0.0.1", node)
                except OSError:
                    return writer.close()
                await asyncio.gather(pump(reader, back), pump(there, writer))
            return join
        async def serve():
            servers = [await asyncio.start_server(led_to(int(node)), "127.0.0.1", 0) for node in sys.argv[1:]]
            print("ports", *(server.sockets[0].getsockname()[1] for server in servers), flush=True)
            await asyncio.gather(*(server.serve_forever() for server in servers))
        asyncio.run(serve())
        """
}
