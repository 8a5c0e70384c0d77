import EventLoop
import HTTP

/// The owner of exchanges, to which they report.
protocol ExchangeOwner: AnyObject {
    var loop: EventLoop { get }
    var holdEnds: HeldRequestCompleter { get }

    /// Sends the answer of an exchange. It is called at most once for each of them.
    func answer(_ stream: Int32, _ response: Response)

    /// Records that no work of an exchange runs any more. It is called once for each of them.
    func ended()
}

/// The owner of the exchanges of one connection. They share it, so that none needs closures of its
/// own: a connection may hold many requests.
///
/// Work may run on after its connection has ended, so this object does not keep the connection.
final class ConnectionExchanges: ExchangeOwner {
    private weak var connection: ServerConnection?
    private let server: HTTP2Server

    init(_ connection: ServerConnection) {
        self.connection = connection
        server = connection.server
    }

    var loop: EventLoop { server.loop }
    var holdEnds: HeldRequestCompleter { server.holdEnds }

    func answer(_ stream: Int32, _ response: Response) { connection?.answer(stream, response) }

    func ended() {
        connection?.exchangeEnded()
        server.workEnded()
    }
}
