import EventLoop
import HTTP
import HTTP2
import Log
import TLS

/// The interface of a connection to its pool. `HTTP2Client` implements it; simulations have another
/// implementation.
protocol PushTransport: AnyObject {
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
    /// Cancels the stream. Returns false if the service cannot have received the whole request.
    func cancel(_ stream: Int32) -> Bool
    func ping(_ completion: @escaping (Duration?) -> Void)
    func retire()
    func close()
}

extension HTTP2Client: PushTransport {}

/// A function that opens a connection. It returns the connection at once and later calls `opened`
/// once, with the reason of the failure or with nil.
typealias PushConnector = (_ address: SocketAddress, _ opened: @escaping (String?) -> Void) -> any PushTransport

extension HTTP2Client {
    static func dial(
        _ endpoint: PushEndpoint, on loop: EventLoop, tls: TLSClientContext, options: PushOptions, log: Log
    ) -> PushConnector {
        { address, opened in
            let client = HTTP2Client(
                loop: loop, host: endpoint.host, port: endpoint.port, tls: tls, options: options.client, log: log)
            let bound = LoopBound((client: client, opened: opened), on: loop)
            // On a later turn, so that the caller has the connection before `opened` is called.
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
