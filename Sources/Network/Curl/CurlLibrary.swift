import Bytes
import CCurl
import EventLoop
import Glibc
import World

/// What holds for everything that libcurl does here, and for its sockets.
enum CurlLibrary {
    /// False where it cannot start, or would look names up on the thread that wants them.
    static var isUsable: Bool { global == CURLE_OK && ccurl_looks_up_aside() != 0 }

    /// Once for the process.
    private static let global = curl_global_init(Int(CURL_GLOBAL_DEFAULT))

    /// Where Debian keeps the certificates that the machine believes, found by their names: nothing is read but what is needed.
    private static let machinesTrust = "/etc/ssl/certs"

    /// No signals, no proxy, no old TLS; the machine's authorities, and those of `extraTrust` (PEM).
    static func prepare(
        _ easy: UnsafeMutableRawPointer, extraTrust: [UInt8]?, connectTimeout: Duration
    ) -> [CURLcode] {
        let numbers: [(CURLoption, Int)] = [
            (CURLOPT_NOSIGNAL, 1),
            // Otherwise giving up a transfer waits for as long as no name server answers.
            (CURLOPT_QUICK_EXIT, 1),
            (CURLOPT_CONNECTTIMEOUT_MS, Int(connectTimeout.wholeMilliseconds)),
            (CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)),
            (CURLOPT_TCP_KEEPALIVE, 1),
        ]
        let texts: [(CURLoption, String?)] = [
            // None from the environment either.
            (CURLOPT_PROXY, ""), (CURLOPT_NOPROXY, "*"),
            (CURLOPT_CAPATH, machinesTrust), (CURLOPT_CAINFO, nil),
        ]
        var codes = numbers.map { ccurl_set_number(easy, $0, $1) } + texts.map { ccurl_set_text(easy, $0, $1) }
        if let extraTrust {
            codes.append(ccurl_set_bytes(easy, CURLOPT_CAINFO_BLOB, extraTrust, extraTrust.count))
        }
        return codes
    }

    /// What proves to a server who we are. What does not fit together ends the transfer when it connects.
    static func show(_ certificate: WebClientOptions.ClientCertificate, on easy: UnsafeMutableRawPointer) -> [CURLcode]
    {
        let (chain, key) = (certificate.chain, certificate.key.reveal())
        return [
            ccurl_set_text(easy, CURLOPT_SSLCERTTYPE, "PEM"), ccurl_set_text(easy, CURLOPT_SSLKEYTYPE, "PEM"),
            ccurl_set_bytes(easy, CURLOPT_SSLCERT_BLOB, chain, chain.count),
            ccurl_set_bytes(easy, CURLOPT_SSLKEY_BLOB, key, key.count),
        ]
    }

    /// A connection on which the other machine confirms nothing for so long is dead: libcurl would go on using it.
    private static let unacknowledged = Duration.seconds(5)

    /// A socket for that address, or none where `isAllowed` says so of its `sockaddr`.
    static func open(
        _ given: UnsafePointer<curl_sockaddr>, isAllowed: (UnsafeRawBufferPointer) -> Bool
    ) -> curl_socket_t {
        guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return -1 }
        // In place: it may be longer than the type that its first bytes have.
        let address = UnsafeRawBufferPointer(
            start: UnsafeRawPointer(given) + offset, count: Int(given.pointee.addrlen))
        guard isAllowed(address) else { return -1 }
        let kind = given.pointee.socktype | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let fd = socket(given.pointee.family, kind, given.pointee.protocol)
        if fd >= 0 { Socket.setUserTimeout(fd, unacknowledged) }
        return fd
    }
}
