import CCurl
import EventLoop
import Glibc
import HTTP
import World

/// An HTTP client for web servers: HTTP/2 if the server has it, otherwise HTTP/1.1, with
/// connections that are reused. It follows no redirects and uses no proxy. It connects only to
/// addresses that `AddressGuard` allows. The check is made for the address that a socket is opened
/// to, so a name cannot lead elsewhere at a second look-up.
///
/// libcurl repeats a request on another connection if a reused connection ends before the first
/// byte of the response. So a request that must not run twice needs an idempotency key, or
/// `keepsConnections = false`.
///
/// It runs one multi handle of libcurl on one loop, which watches libcurl's descriptors and timer.
/// Created and used on that loop only. Tests: `WebClientTests`, `WebClientOptionTests`.
public final class WebClient {
    public let loop: EventLoop
    public let options: WebClientOptions
    private let multi: UnsafeMutableRawPointer
    private var running: [UnsafeMutableRawPointer: RunningTransfer] = [:]
    private var perServer: [String: Int] = [:]
    /// The servers with a recent connection, as long as later connections succeed too.
    private var reached: Set<String> = []
    private var unreached = 0
    private var watches: [curl_socket_t: DescriptorWatcher] = [:]
    private var timer: TimerID?
    private var isClosed = false

    /// Throws if libcurl cannot start, or would resolve names on the loop.
    public init(loop: EventLoop, options: WebClientOptions = WebClientOptions()) throws(SystemFailure) {
        guard CurlLibrary.isUsable, let multi = curl_multi_init() else {
            throw SystemFailure("curl_multi_init", ENOSYS)
        }
        self.loop = loop
        self.options = options
        self.multi = multi
        ccurl_multi_set_callbacks(
            multi, Unmanaged.passUnretained(self).toOpaque(), CurlCallbacks.socket, CurlCallbacks.timer)
        _ = ccurl_multi_set_number(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
        _ = ccurl_multi_set_number(multi, CURLMOPT_MAX_HOST_CONNECTIONS, options.connectionsPerServer)
        _ = ccurl_multi_set_number(multi, CURLMOPT_MAXCONNECTS, options.idleConnections)
    }

    /// No completion is called: if `close` was not called, the loop has ended before.
    deinit {
        guard !isClosed else { return }
        ccurl_multi_set_callbacks(multi, nil, nil, nil)
        for transfer in running.values { release(transfer) }
        curl_multi_cleanup(multi)
    }

    /// The most servers that are remembered as reached.
    private static let remembered = 1000

    /// The number of running transfers.
    public var count: Int { running.count }

    // MARK: Transfers

    /// Sends a request. Always returns, at the transfer's deadline at the latest.
    public func send(_ transfer: Transfer) async -> Result<Response, TransferFailure> {
        await withUnsafeContinuation { continuation in
            start(transfer) { continuation.resume(returning: $0) }
        }
    }

    /// Starts a request. `completion` is called once, on the loop, perhaps before this returns.
    @discardableResult
    public func start(
        _ transfer: Transfer, completion: @escaping (Result<Response, TransferFailure>) -> Void
    ) -> RunningTransfer {
        precondition(loop.isCurrent, "WebClient: not on its loop")
        let new = RunningTransfer(transfer, self, completion: completion)
        if let refusal = refusal(of: transfer) {
            new.complete(.failure(refusal))
            return new
        }
        guard let easy = curl_easy_init() else {
            new.complete(.failure(TransferFailure(.busy, mayHaveArrived: false, "libcurl is out of memory")))
            return new
        }
        new.easy = easy
        running[easy] = new
        perServer[transfer.url.origin, default: 0] += 1
        new.isUnreached = !reached.contains(transfer.url.origin)
        if new.isUnreached { unreached += 1 }
        guard prepare(easy, new), curl_multi_add_handle(multi, easy) == CURLM_OK else {
            finish(new, .failure(TransferFailure(.malformed, mayHaveArrived: false, "libcurl refused the request")))
            return new
        }
        new.timer = loop.schedule(after: transfer.deadline) { [weak self, weak new] in
            guard let self, let new else { return }
            new.timer = nil
            give(up: new, .deadline, "no answer in time")
        }
        return new
    }

    private func refusal(of transfer: Transfer) -> TransferFailure? {
        let refused = { TransferFailure($0, mayHaveArrived: false, $1) }
        if isClosed { return refused(.cancelled, "closed") }
        guard transfer.url.secure || options.plainHTTP != .never else {
            return refused(.insecure, "only https is allowed")
        }
        guard Self.isToken(transfer.method), transfer.fields.all.allSatisfy(Self.isField) else {
            return refused(.malformed, "invalid method or header field")
        }
        guard running.count < options.transfers else { return refused(.busy, "too many open requests") }
        guard perServer[transfer.url.origin, default: 0] < options.transfersPerServer else {
            return refused(.busy, "too many open requests to this server")
        }
        guard unreached < options.transfersUnreached || reached.contains(transfer.url.origin) else {
            return refused(.busy, "too many requests wait for a connection")
        }
        return nil
    }

    private static func isToken(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20 || 0x30...0x39 ~= byte
                    || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
            }
    }

    private static func isField(_ field: Fields.Field) -> Bool {
        isToken(field.name) && field.value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 }
    }

    /// Ends a transfer from our side.
    func give(up transfer: RunningTransfer, _ cause: TransferFailure.Cause, _ reason: String) {
        precondition(loop.isCurrent, "WebClient: not on its loop")
        guard let easy = transfer.easy else { return }
        // A server that received the request and stays silent may never answer on this connection.
        // The connection is closed with the last transfer that it carries.
        if cause == .deadline, transfer.isReady { _ = ccurl_set_number(easy, CURLOPT_FORBID_REUSE, 1) }
        finish(transfer, .failure(transfer.failure(cause, status: Int(ccurl_status(easy)), reason)))
    }

    private func finish(_ transfer: RunningTransfer, _ result: Result<Response, TransferFailure>) {
        guard let easy = transfer.easy else { return }
        running[easy] = nil
        let origin = transfer.transfer.url.origin
        perServer[origin] = perServer[origin].flatMap { $0 > 1 ? $0 - 1 : nil }
        settle(transfer)
        if !transfer.isReady { reached.remove(origin) }
        if let timer = transfer.timer { loop.cancel(timer) }
        transfer.timer = nil
        release(transfer)
        transfer.complete(result)
    }

    /// Records that a connection is established.
    func connected(_ transfer: RunningTransfer) {
        settle(transfer)
        if reached.count >= Self.remembered { reached.removeFirst() }
        reached.insert(transfer.transfer.url.origin)
    }

    private func settle(_ transfer: RunningTransfer) {
        guard transfer.isUnreached else { return }
        transfer.isUnreached = false
        unreached -= 1
    }

    private func release(_ transfer: RunningTransfer) {
        guard let easy = transfer.easy else { return }
        transfer.easy = nil
        curl_multi_remove_handle(multi, easy)
        curl_easy_cleanup(easy)
        curl_slist_free_all(transfer.list)
        transfer.list = nil
    }

    /// Ends all transfers and closes all connections.
    public func close() {
        precondition(loop.isCurrent, "WebClient: not on its loop")
        guard !isClosed else { return }
        isClosed = true
        for transfer in Array(running.values) { give(up: transfer, .cancelled, "closed") }
        // Done here and not in `deinit`, because it closes connections and cancels their watchers.
        curl_multi_cleanup(multi)
        setTimer(-1)
    }

    // MARK: The loop

    /// Watches a descriptor for libcurl, or stops watching it.
    func watch(_ socket: curl_socket_t, _ what: Int32) {
        guard what != CURL_POLL_REMOVE else {
            watches.removeValue(forKey: socket)?.cancel()
            return
        }
        var interest: Interest = []
        if what == CURL_POLL_IN || what == CURL_POLL_INOUT { interest.insert(.read) }
        if what == CURL_POLL_OUT || what == CURL_POLL_INOUT { interest.insert(.write) }
        if let watch = watches[socket] { return watch.change(interest) }
        // Without a watcher, its transfer ends at its deadline.
        watches[socket] = try? loop.watch(fd: socket, interest) { [weak self] in self?.act(on: socket, $0) }
    }

    func setTimer(_ milliseconds: Int) {
        if let timer { loop.cancel(timer) }
        timer = nil
        guard milliseconds >= 0 else { return }
        timer = loop.schedule(after: .milliseconds(milliseconds)) { [weak self] in
            self?.timer = nil
            self?.act(on: CURL_SOCKET_TIMEOUT, [])
        }
    }

    private func act(on socket: curl_socket_t, _ readiness: Readiness) {
        guard !isClosed else { return }
        var events: Int32 = 0
        if readiness.contains(.read) { events |= CURL_CSELECT_IN }
        if readiness.contains(.write) { events |= CURL_CSELECT_OUT }
        if !readiness.isDisjoint(with: [.hangUp, .failed]) { events |= CURL_CSELECT_ERR }
        var left: Int32 = 0
        curl_multi_socket_action(multi, socket, events, &left)
        var code = CURLE_OK
        while !isClosed, let easy = ccurl_multi_ended(multi, &code) {
            guard let transfer = running[easy] else { continue }
            finish(transfer, transfer.outcome(code, status: Int(ccurl_status(easy))))
        }
    }
}
