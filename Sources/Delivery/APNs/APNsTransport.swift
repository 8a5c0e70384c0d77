import EventLoop
import HTTP
import HTTP2
import Log
import TLS

/// What a pool needs of a connection. `HTTP2Client` is one; a simulation has others.
protocol APNsTransport: AnyObject {
    var state: ClientState { get }
    var onStateChange: ((ClientState) -> Void)? { get set }
    var onCapacity: (() -> Void)? { get set }
    var goAwayReason: String? { get }
    var activeStreams: Int { get }
    var freeStreams: Int { get }
    var peerMaxConcurrentStreams: Int { get }
    var settingsReceived: Int { get }

    func begin(
        _ request: FormedRequest, of form: RequestForm,
        completion: @escaping (Result<Response, RequestFailure>) -> Void
    ) -> Int32?
    /// False if the service cannot have had all of it.
    func cancel(_ stream: Int32) -> Bool
    func ping(_ completion: @escaping (Duration?) -> Void)
    func retire()
    func close()
}

extension HTTP2Client: APNsTransport {}

/// Opens a connection: gives it back at once, and says later, once, why it did not open, or nil.
typealias APNsConnector = (_ address: SocketAddress, _ opened: @escaping (String?) -> Void) -> any APNsTransport

extension HTTP2Client {
    static func dial(
        _ endpoint: APNsEndpoint, on loop: EventLoop, tls: TLSClientContext, options: APNsOptions, log: Log
    ) -> APNsConnector {
        { address, opened in
            let client = HTTP2Client(
                loop: loop, host: endpoint.host, port: endpoint.port, tls: tls, options: options.client, log: log)
            let bound = LoopBound((client: client, opened: opened), on: loop)
            // On a later turn: whoever dials has to have the connection before it hears of it.
            loop.post {
                loop.spawn {
                    var failure: String?
                    do throws(ConnectionFailure) { try await bound.value.client.connect(to: [address]) } catch {
                        failure = error.description
                    }
                    bound.value.opened(failure)
                }
            }
            return client
        }
    }
}
