import Bytes
import CCurl
import EventLoop
import Glibc
import World

/// The settings that all transfers and sockets of libcurl share.
enum CurlLibrary {
    /// Whether libcurl can start, and resolves names without blocking the calling thread.
    static var isUsable: Bool { global == CURLE_OK && ccurl_looks_up_aside() != 0 }

    /// The result of the initialization, once for the process.
    private static let global = curl_global_init(Int(CURL_GLOBAL_DEFAULT))

    /// The directory where Debian stores the trusted certificates, indexed by name, so that only
    /// those that are needed are read.
    private static let machinesTrust = "/etc/ssl/certs"

    /// Sets no signals, no proxy, no old TLS versions; trusts the system's authorities and those of
    /// `extraTrust` (PEM).
    static func prepare(
        _ easy: UnsafeMutableRawPointer, extraTrust: [UInt8]?, connectTimeout: Duration
    ) -> [CURLcode] {
        let numbers: [(CURLoption, Int)] = [
            (CURLOPT_NOSIGNAL, 1),
            // Without this, cancelling a transfer waits until the name servers answer.
            (CURLOPT_QUICK_EXIT, 1),
            (CURLOPT_CONNECTTIMEOUT_MS, Int(connectTimeout.wholeMilliseconds)),
            (CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)),
            (CURLOPT_TCP_KEEPALIVE, 1),
        ]
        let texts: [(CURLoption, String?)] = [
            // Also ignores a proxy from the environment.
            (CURLOPT_PROXY, ""), (CURLOPT_NOPROXY, "*"),
            (CURLOPT_CAPATH, machinesTrust), (CURLOPT_CAINFO, nil),
        ]
        var codes = numbers.map { ccurl_set_number(easy, $0, $1) } + texts.map { ccurl_set_text(easy, $0, $1) }
        if let extraTrust {
            codes.append(ccurl_set_bytes(easy, CURLOPT_CAINFO_BLOB, extraTrust, extraTrust.count))
        }
        return codes
    }

    /// Sets the client certificate. If chain and key do not match, the transfer fails when it
    /// connects.
    static func show(_ certificate: WebClientOptions.ClientCertificate, on easy: UnsafeMutableRawPointer) -> [CURLcode]
    {
        let (chain, key) = (certificate.chain, certificate.key.reveal())
        return [
            ccurl_set_text(easy, CURLOPT_SSLCERTTYPE, "PEM"), ccurl_set_text(easy, CURLOPT_SSLKEYTYPE, "PEM"),
            ccurl_set_bytes(easy, CURLOPT_SSLCERT_BLOB, chain, chain.count),
            ccurl_set_bytes(easy, CURLOPT_SSLKEY_BLOB, key, key.count),
        ]
    }

    /// If sent bytes are not acknowledged for this long, the connection is closed. libcurl alone
    /// would continue to use it.
    private static let unacknowledged = Duration.seconds(5)

    /// Opens a socket for the address; -1 if `isAllowed` refuses its `sockaddr`.
    static func open(
        _ given: UnsafePointer<curl_sockaddr>, isAllowed: (UnsafeRawBufferPointer) -> Bool
    ) -> curl_socket_t {
        guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return -1 }
        // Read in place, because it may be longer than the type of its first bytes.
        let address = UnsafeRawBufferPointer(
            start: UnsafeRawPointer(given) + offset, count: Int(given.pointee.addrlen))
        guard isAllowed(address) else { return -1 }
        let kind = given.pointee.socktype | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let fd = socket(given.pointee.family, kind, given.pointee.protocol)
        if fd >= 0 { Socket.setUserTimeout(fd, unacknowledged) }
        return fd
    }
}
