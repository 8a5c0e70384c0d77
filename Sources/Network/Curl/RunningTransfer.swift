import CCurl
import EventLoop
import Glibc
import HTTP

/// The state of a transfer that is running. Used on the loop only.
public final class RunningTransfer {
    let transfer: Transfer
    let addresses: AddressGuard
    let plainHTTP: WebClientOptions.PlainHTTP
    let headBytes: Int
    /// The handle of libcurl; nil once the transfer is over.
    var easy: UnsafeMutableRawPointer?
    var list: UnsafeMutablePointer<curl_slist>?
    var timer: TimerID?
    weak var client: WebClient?
    private var completion: ((Result<Response, TransferFailure>) -> Void)?

    /// Whether a connection is established and the request is about to be written.
    private(set) var isReady = false
    /// Whether it is unknown if the server can be reached; false once a connection is established.
    var isUnreached = false
    /// The reason why none of the addresses tried so far may be connected to; nil if one was
    /// allowed.
    private(set) var refusal: Refusal?

    enum Refusal: Equatable {
        /// The kind of the refused address.
        case address(String)
        /// Requests to the address would not be encrypted.
        case insecure
    }

    private var wasLetThrough = false
    private var fields = Fields()
    private var head = 0
    private var body: [UInt8] = []
    private var isTooLarge = false

    init(
        _ transfer: Transfer, _ client: WebClient, completion: @escaping (Result<Response, TransferFailure>) -> Void
    ) {
        self.transfer = transfer
        self.client = client
        self.completion = completion
        addresses = client.options.addresses
        plainHTTP = client.options.plainHTTP
        headBytes = client.options.headBytes
    }

    /// Cancels the transfer, and calls its completion now.
    public func cancel() {
        client?.give(up: self, .cancelled, "cancelled")
    }

    // MARK: Callbacks of libcurl

    /// Opens a socket for the address; -1 if it may not be connected to.
    func open(_ given: UnsafePointer<curl_sockaddr>) -> curl_socket_t {
        CurlLibrary.open(given) { mayConnect(to: $0) }
    }

    /// Whether it may connect to a `sockaddr`. If one of several addresses was allowed, a failure
    /// is not reported as a refusal.
    func mayConnect(to address: UnsafeRawBufferPointer) -> Bool {
        let refusal = refusal(of: address)
        if refusal == nil { wasLetThrough = true }
        self.refusal = wasLetThrough ? nil : refusal
        return refusal == nil
    }

    private func refusal(of address: UnsafeRawBufferPointer) -> Refusal? {
        if let what = addresses.refusal(ofSocketAddress: address) { return .address(what) }
        let isNamed = transfer.url.secure || plainHTTP != .namedRanges || addresses.names(socketAddress: address)
        return isNamed ? nil : .insecure
    }

    func isAboutToSend() {
        isReady = true
        client?.connected(self)
    }

    /// Takes a header line. Returns the number of bytes taken: all, or another number, which ends
    /// the transfer.
    func receive(head line: UnsafeRawBufferPointer) -> Int {
        head += line.count
        guard head <= headBytes else {
            isTooLarge = true
            return line.count + 1
        }
        if line.starts(with: "HTTP/".utf8) {
            // The fields before belong to a 1xx response.
            fields = Fields()
        } else if let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > 0 {
            let name = String(decoding: line[..<colon], as: UTF8.self).lowercased()
            let value = line[(colon + 1)...].drop { $0 == 0x20 || $0 == 0x09 }
            fields.add(name, String(decoding: Self.trimmed(value), as: UTF8.self))
        }
        return line.count
    }

    private static func trimmed(_ value: Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
        var value = value
        while let last = value.last, [0x20, 0x09, 0x0d, 0x0a].contains(last) { value.removeLast() }
        return value
    }

    func receive(body part: UnsafeRawBufferPointer) -> Int {
        guard body.count + part.count <= transfer.answerBytes else {
            isTooLarge = true
            return part.count + 1
        }
        body.append(contentsOf: part)
        return part.count
    }

    // MARK: The end

    /// The outcome for a result of libcurl.
    func outcome(_ code: CURLcode, status: Int) -> Result<Response, TransferFailure> {
        if code == CURLE_OK, status > 0 { return .success(Response(status: status, fields: fields, body: body)) }
        let (cause, reason) = explain(code)
        return .failure(failure(cause, status: status, reason))
    }

    func failure(_ cause: TransferFailure.Cause, status: Int = 0, _ reason: String) -> TransferFailure {
        guard status >= 200 else { return TransferFailure(cause, mayHaveArrived: isReady, reason) }
        return TransferFailure(cause, mayHaveArrived: isReady, status: status, fields: fields, reason)
    }

    private func explain(_ code: CURLcode) -> (TransferFailure.Cause, String) {
        let text = String(cString: curl_easy_strerror(code))
        switch code {
        case CURLE_WRITE_ERROR where isTooLarge: return (.tooLarge, "the answer is too large")
        case CURLE_COULDNT_CONNECT:
            switch refusal {
            case .address(let what): return (.refusedAddress, "the host is at an address that is \(what)")
            case .insecure: return (.insecure, "only https is allowed to the host's address")
            case nil: return (.unreachable, text)
            }
        case CURLE_COULDNT_RESOLVE_HOST: return (.unknownHost, text)
        case CURLE_SSL_CONNECT_ERROR: return (.unreachable, text)
        case CURLE_PEER_FAILED_VERIFICATION: return (.untrusted, text)
        // libcurl's timeout applies only to connecting.
        case CURLE_OPERATION_TIMEDOUT: return (isReady ? .deadline : .unreachable, "no connection in time")
        default: return (.broken, text)
        }
    }

    /// Completes the transfer once. Later calls do nothing.
    func complete(_ result: Result<Response, TransferFailure>) {
        guard let completion else { return }
        self.completion = nil
        completion(result)
    }
}
