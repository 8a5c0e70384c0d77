import EventLoop
import HTTP
import HTTP2
import JSON
import Log
import TLS
import World

/// A request to a running relay, sent as an external caller would send it.
public struct Probe: Sendable {
    /// The answer of the relay, or its absence.
    public enum Answer: Sendable, Equatable {
        /// All needed dependencies work. The texts are the relay's report on each dependency.
        case ready([String: String])
        /// A needed dependency fails.
        case notReady([String: String])
        /// No relay answered.
        case silent(String)
    }

    /// An answer, with the time that the relay told with it.
    struct Visit: Sendable {
        let answer: Answer
        let date: Timestamp?

        static func silent(_ reason: String) -> Visit { Visit(answer: .silent(reason), date: nil) }
    }

    /// The longest wait for an answer. A relay waits less than this for its store before it reports
    /// it as down.
    static let timeout: Duration = .seconds(10)

    /// Requests `/ready` at the origin. Its certificate must come from the installation's authority
    /// or from one of the system's.
    public static func ready(_ settings: Settings, authority: [UInt8]) throws(Failure) -> Answer {
        try visit(settings, authority: authority).answer
    }

    static func visit(_ settings: Settings, authority: [UInt8]) throws(Failure) -> Visit {
        let origin = settings.origin
        return try visit(
            settings, authority, at: HostPort(host: origin.host, port: origin.port ?? 443), path: "/ready")
    }

    /// Requests `/health` at the address on which the relay listens. This needs no name service, and
    /// no way from this machine to the origin. If the relay takes this machine for a balancer, the
    /// connection begins with a PROXY header.
    static func health(_ settings: Settings, authority: [UInt8]) throws(Failure) -> Answer {
        // The kernel connects to this machine if the address is the one for all, such as 0.0.0.0.
        var options = ClientOptions()
        options.proxies = settings.proxies?.all ?? []
        return try visit(settings, authority, at: settings.listen, path: "/health", options).answer
    }

    private static func visit(
        _ settings: Settings, _ authority: [UInt8], at place: HostPort, path: String,
        _ options: ClientOptions = ClientOptions()
    ) throws(Failure) -> Visit {
        do {
            let context = try TLSClientContext(roots: .systemAnd(authority))
            let origin = settings.origin
            var options = options
            options.connectTimeout = .seconds(5)
            options.serverName = origin.host
            return try EventLoop.run("probe", time: SystemTime()) { [options] loop in
                await send(path, place, origin, context, options, on: loop)
            }
        } catch {
            throw Failure(
                .failed, "no request to the relay can be sent: \(error)",
                next: "Check \(settings.tls.authority.written) (tls.ca).")
        }
    }

    private static func send(
        _ path: String, _ place: HostPort, _ origin: WebAddress, _ context: TLSClientContext,
        _ options: ClientOptions, on loop: EventLoop
    ) async -> Visit {
        let client = HTTP2Client(
            loop: loop, host: place.host, port: place.port, tls: context, options: options, log: Log(minimum: .error))
        do throws(ConnectionFailure) {
            try await client.connect()
        } catch {
            return .silent(error.description)
        }
        defer { client.close() }
        let request = ClientRequest(method: "GET", path: path, authority: origin.authority)
        switch await client.send(request, deadline: timeout) {
        case .failure(.notSent(let reason)), .failure(.ambiguous(let reason)): return .silent(reason)
        case .success(let response):
            let date = response.fields["date"].flatMap { ClockDifference.time(httpDate: $0) }
            let body = (try? JSONReader.read(response.body))?.object
            var dependencies: [String: String] = [:]
            for member in body?["dependencies"]?.object?.members ?? [] {
                dependencies[member.name] = member.value.string
            }
            switch response.status {
            case 200: return Visit(answer: .ready(dependencies), date: date)
            case 503: return Visit(answer: .notReady(dependencies), date: date)
            default: return .silent("it answered \(response.status)")
            }
        }
    }
}
