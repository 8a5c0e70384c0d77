import Bytes
import Domain
import EventLoop
import Glibc
import HTTP
import HTTP2
import Log
import Measuring
import Relay
import Storage
import Synchronization
import TLS
import World

/// The state that the tasks of one measurement share.
final class Tally: Sendable {
    private let count = Atomic<Int>(0)
    private let failure = Mutex<String?>(nil)

    func next() -> Int { count.wrappingAdd(1, ordering: .relaxed).oldValue }
    var total: Int { count.load(ordering: .relaxed) }
    func fail(_ what: String) { failure.withLock { $0 = $0 ?? what } }
    func check() throws {
        if let failure = failure.withLock({ $0 }) { throw Unmeasured(failure) }
    }
}

/// Keeps `width` calls in flight on the loop. Returns the calls per second.
func rate(
    _ loop: EventLoop, width: Int, seconds: Int, _ call: @escaping @Sendable (Int, Tally) async -> Void
) async throws -> Double {
    let time = SystemTime()
    let tally = Tally()
    let started = time.instant()
    let end = started + .seconds(seconds)
    await loop.perform {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<width {
                group.addTask { while time.instant() < end { await call(tally.next(), tally) } }
            }
        }
    }
    try tally.check()
    return Double(tally.total) / (Double((time.instant() - started).wholeNanoseconds) / 1e9)
}

let connections = 4
let streams = 16

func main(_ words: [String]) async throws {
    guard words.count == 6, let port = UInt16(words[2]), let rounds = Int(words[3]), let seconds = Int(words[4]),
        let users = Int(words[5])
    else { throw Unmeasured("DIRECTORY PORT ROUNDS SECONDS USERS") }
    let directory = words[1]
    let time = SystemTime()
    let log = Log(minimum: .error, time: time)
    let group = try LoopGroup.start(count: 1, time: time)
    let loop = group.loops[0]
    let tls = try TLSClientContext(
        roots: .pem(try read("\(directory)/ca.pem")), certificateChainPEM: try read("\(directory)/shop.pem"),
        privateKeyPEM: Secret(try read("\(directory)/shop.key")))

    let clients = await loop.perform { () async -> [LoopBound<HTTP2Client>] in
        var clients: [LoopBound<HTTP2Client>] = []
        for _ in 0..<connections {
            let client = HTTP2Client(loop: loop, host: "127.0.0.1", port: port, tls: tls, log: log)
            if (try? await client.connect()) != nil { clients.append(LoopBound(client, on: loop)) }
        }
        return clients
    }
    guard clients.count == connections else { throw Unmeasured("no connection to the relay") }

    @Sendable func get(_ number: Int, _ method: String, _ path: String, _ body: [UInt8], _ tally: Tally) async {
        let client = clients[number % connections].value
        var fields = Fields()
        if !body.isEmpty { fields.add("content-type", "application/json") }
        let request = ClientRequest(
            method: method, path: path, authority: "127.0.0.1:\(port)", fields: fields, body: body)
        switch await client.send(request, deadline: .seconds(10)) {
        case .success(let response) where response.status < 300: break
        case .success(let response): tally.fail("\(method) \(path): \(response.status)")
        case .failure(let failure): tally.fail("\(method) \(path): \(failure)")
        }
    }

    // Create the users through the relay itself.
    let made = Tally()
    await loop.perform {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<64 {
                group.addTask {
                    while case let number = made.next(), number < users {
                        await get(number, "POST", "/register", Array(#"{"username":"user-\#(number)"}"#.utf8), made)
                    }
                }
            }
        }
    }
    try made.check()

    let store = try Store.open(.sqlite(path: "\(directory)/twoefay.db"), time: time, log: log)
    let width = connections * streams
    print("\(users) users, \(connections) connections × \(streams) streams, \(rounds) rounds of \(seconds) s, in turn")
    guard let website = try await websiteID(store, loop) else { throw Unmeasured("no website") }
    var ours: [Double] = []
    var reads: [Double] = []
    for round in 1...rounds {
        let answered = try await rate(loop, width: width, seconds: seconds) { number, tally in
            await get(number, "GET", "/user/user-\(number % users)", [], tally)
        }
        let read = try await rate(loop, width: width, seconds: seconds) { number, tally in
            do {
                if try await store.user(named: "user-\(number % users)", of: website, at: time.now()) == nil {
                    tally.fail("a user is gone")
                }
            } catch {
                tally.fail("\(error)")
            }
        }
        ours.append(answered)
        reads.append(read)
        print(
            "round \(round): GET /user \(Int(answered))/s, point reads \(Int(read))/s, ratio \(rounded(answered / read))"
        )
    }
    print(
        "median: GET /user \(Int(median(ours)))/s, point reads \(Int(median(reads)))/s, "
            + "ratio \(rounded(median(zip(ours, reads).map { $0 / $1 })))")
    store.close()
    group.stopAndJoin()
}

func rounded(_ value: Double) -> String {
    let thousandths = Int((value * 1000).rounded())
    let digits = String(thousandths % 1000)
    return "\(thousandths / 1000).\(String(repeating: "0", count: 3 - digits.utf8.count))\(digits)"
}

/// Returns the id of the only website.
func websiteID(_ store: Store, _ loop: EventLoop) async throws -> WebsiteID? {
    let script = Script("benchmark", reads: [Statement("SELECT id FROM website")()])
    let rows = await loop.perform { try? await store.run(script) }
    guard let bytes = try rows?[0].first?.blob("id") else { return nil }
    return WebsiteID(bytes)
}

try measure { try await main(CommandLine.arguments) }
