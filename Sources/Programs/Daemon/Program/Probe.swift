import EventLoop
import HTTP
import HTTP2
import JSON
import Log
import TLS
import World

/// A question to a relay that runs, as any caller from outside would ask it.
public struct Probe: Sendable {
    public enum Answer: Sendable, Equatable {
        /// The relay's own word for each of its dependencies.
        case ready([String: String])
        case notReady([String: String])
        /// Nobody answered, or not as a relay does.
        case silent(String)
    }

    /// Longer than a relay waits for its store before it says that it has none.
    static let timeout: Duration = .seconds(10)

    /// GET /ready at the origin, whose certificate must come from the installation's authority or one of the system's.
    public static func ready(_ settings: Settings, authority: [UInt8]) throws(Failure) -> Answer {
        do {
            let context = try TLSClientContext(roots: .systemAnd(authority))
            let origin = settings.origin
            return try EventLoop.run("probe", time: SystemTime()) { loop in await ask(origin, context, on: loop) }
        } catch {
            throw Failure(
                .failed, "the relay cannot be asked: \(error)", next: "Is \(settings.tls.authority.written) right?")
        }
    }

    private static func ask(_ origin: WebAddress, _ context: TLSClientContext, on loop: EventLoop) async -> Answer {
        var options = ClientOptions()
        options.connectTimeout = .seconds(5)
        let client = HTTP2Client(
            loop: loop, host: origin.host, port: origin.port ?? 443, tls: context, options: options,
            log: Log(minimum: .error))
        do throws(ConnectionFailure) {
            try await client.connect()
        } catch {
            return .silent(error.description)
        }
        defer { client.close() }
        let authority = origin.authority
        let request = ClientRequest(method: "GET", path: "/ready", authority: authority)
        switch await client.send(request, deadline: timeout) {
        case .failure(.notSent(let reason)), .failure(.ambiguous(let reason)): return .silent(reason)
        case .success(let response):
            let body = (try? JSONReader.read(response.body))?.object
            var dependencies: [String: String] = [:]
            for member in body?["dependencies"]?.object?.members ?? [] {
                dependencies[member.name] = member.value.string
            }
            switch response.status {
            case 200: return .ready(dependencies)
            case 503: return .notReady(dependencies)
            default: return .silent("it answered \(response.status)")
            }
        }
    }
}
