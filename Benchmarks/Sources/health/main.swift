import Bytes
import EventLoop
import Glibc
import HTTP
import HTTP2
import Log
import TLS
import World

/// The handler of `health PORT CERTIFICATE KEY [AUTHORITY]`: one loop that answers every request
/// with the same small JSON. Its figures are the upper limit for the daemon.
struct Health: Handler {
    let answer = Response(
        status: 200, fields: Fields([.init("content-type", "application/json")]),
        body: Array(#"{"status":"ok","storage":"ok"}"#.utf8))

    func handle(_ request: Request) -> Reply { .now(answer) }
}

func contents(_ path: String) -> [UInt8] {
    guard let file = fopen(path, "r") else { fail("cannot read \(path)") }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var next = fgetc(file)
    while next != EOF {
        bytes.append(UInt8(truncatingIfNeeded: next))
        next = fgetc(file)
    }
    return bytes
}

func fail(_ text: String) -> Never {
    print("health: \(text)")
    exit(1)
}

let arguments = CommandLine.arguments
guard arguments.count >= 4, let port = UInt16(arguments[1]) else { fail("PORT CERTIFICATE KEY [AUTHORITY]") }
do {
    let tls = try TLSServerContext(
        certificateChainPEM: contents(arguments[2]), privateKeyPEM: Secret(contents(arguments[3])),
        websitesCA: arguments.count > 4 ? contents(arguments[4]) : [])
    let loop = try EventLoop(name: "health", time: SystemTime())
    loop.post {
        do {
            guard let address = SocketAddress(host: "127.0.0.1", port: port) else { fail("address") }
            var limits = ServerLimits()
            // Benchmarks/Abuse sets this variable. No connection then ends because of its cost.
            if getenv("HEALTH_BUDGET") != nil { limits.abuseCapacity = .max / 2 }
            let server = try HTTP2Server(
                loop: loop, address: address, tls: tls, handler: Health(), limits: limits, log: Log())
            try server.start()
            serving = LoopBound(server, on: loop)
        } catch {
            fail("\(error)")
        }
    }
    loop.run()
} catch {
    fail("\(error)")
}

/// Keeps the server alive. Guard: written once, on the loop.
nonisolated(unsafe) var serving: LoopBound<HTTP2Server>?
