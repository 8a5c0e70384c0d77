import CLinuxPhone
import Dispatch
import Synchronization
import TwoefayPhone

/// Requests over libcurl. It is for the tests of this package, not for apps.
public final class CurlTransport: Transport {
    /// A connection that no request uses at the moment.
    private struct Connection: @unchecked Sendable {
        // The pointer is used by one request at a time.
        let curl: UnsafeMutableRawPointer
        var certificate: [UInt8] = []
    }

    private let clock: any PhoneClock
    private let idle = Mutex<[ServerTrust: [Connection]]>([:])

    /// - Parameter clock: the phone's clock, by which the dates of certificates are checked.
    public init(clock: any PhoneClock = SystemClock()) {
        self.clock = clock
        curl_global_init(Int(CURL_GLOBAL_DEFAULT))
    }

    deinit { for connection in idle.withLock({ $0.values.joined() }) { curl_easy_cleanup(connection.curl) } }

    public func send(
        _ request: RelayRequest, to server: ServerTrust, isFresh: Bool
    ) async throws(TransportFailure) -> RelayReply {
        let result = await withCheckedContinuation { continuation in
            // libcurl blocks its thread.
            DispatchQueue.global().async {
                continuation.resume(returning: self.blockingSend(request, to: server, isFresh: isFresh))
            }
        }
        return try result.get()
    }

    private func blockingSend(
        _ request: RelayRequest, to server: ServerTrust, isFresh: Bool
    ) -> Result<RelayReply, TransportFailure> {
        let old = idle.withLock { idle in
            isFresh ? idle.removeValue(forKey: server) ?? [] : idle[server]?.popLast().map { [$0] } ?? []
        }
        if isFresh { for connection in old { curl_easy_cleanup(connection.curl) } }
        guard
            var connection = isFresh
                ? curl_easy_init().map({ Connection(curl: $0) })
                : old.first ?? curl_easy_init().map({ Connection(curl: $0) })
        else { return .failure(.notSent("libcurl does not start")) }
        let result = perform(request, to: server, over: &connection)
        if case .success = result {
            let used = connection
            idle.withLock { $0[server, default: []].append(used) }
        } else {
            curl_easy_cleanup(connection.curl)
        }
        return result
    }

    private func perform(
        _ request: RelayRequest, to server: ServerTrust, over connection: inout Connection
    ) -> Result<RelayReply, TransportFailure> {
        var transfer = phone_transfer()
        for (name, value) in request.fields {
            transfer.fields = curl_slist_append(transfer.fields, "\(name): \(value)")
        }
        _ = phone_append(&transfer.certificate, connection.certificate, connection.certificate.count)
        defer {
            curl_slist_free_all(transfer.fields)
            for bytes in [transfer.head, transfer.content, transfer.certificate] { free(bytes.bytes) }
        }
        transfer.timeout = request.timeout * 1000
        transfer.time = -1
        if case .checked(let offset) = server.dates {
            transfer.time = Timestamp(milliseconds: clock.now().milliseconds + offset).seconds
        }
        let body = request.body?.bytes
        transfer.body_count = body?.count ?? -1
        let pins = Pins(server.pins)
        transfer.choose = { state, chain, count in
            guard let state, let chain else { return -1 }
            let certificates = (0..<Int(count)).map {
                Array(UnsafeBufferPointer(start: chain[$0].bytes, count: chain[$0].count))
            }
            let pins = Unmanaged<Pins>.fromOpaque(state).takeUnretainedValue()
            let anchor = PinRule.anchor(in: certificates, pins: pins.list, OpenSSLCryptography())
            return anchor.flatMap { certificates.firstIndex(of: $0.der) }.map { Int32($0) } ?? -1
        }
        transfer.state = Unmanaged.passUnretained(pins).toOpaque()
        let code = withExtendedLifetime(pins) {
            (server.origin.text + request.path).withCString { url in
                request.method.withCString { method in
                    server.origin.host.withCString { host in
                        (body ?? []).withUnsafeBufferPointer { body in
                            (transfer.url, transfer.method, transfer.host) = (url, method, host)
                            transfer.body = body.baseAddress
                            return phone_send(connection.curl, &transfer)
                        }
                    }
                }
            }
        }
        let untrusted = withUnsafeBytes(of: transfer.untrusted) {
            String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        }
        guard untrusted.isEmpty else { return .failure(.untrusted(untrusted)) }
        guard code == CURLE_OK else {
            let reason = String(cString: curl_easy_strerror(code))
            let isUnsent = [
                CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST, CURLE_SSL_CONNECT_ERROR,
                CURLE_PEER_FAILED_VERIFICATION,
            ].contains(code)
            return .failure(isUnsent ? .notSent(reason) : .noAnswer(reason))
        }
        connection.certificate = Self.bytes(transfer.certificate)
        return .success(
            RelayReply(
                status: transfer.status, fields: Self.fields(Self.bytes(transfer.head)),
                body: Self.bytes(transfer.content), certificate: connection.certificate))
    }

    private final class Pins: Sendable {
        let list: [[UInt8]]

        init(_ list: [[UInt8]]) { self.list = list }
    }

    private static func bytes(_ bytes: phone_bytes) -> [UInt8] {
        Array(UnsafeBufferPointer(start: bytes.bytes, count: bytes.count))
    }

    private static func fields(_ head: [UInt8]) -> [String: String] {
        var fields: [String: String] = [:]
        for line in String(decoding: head, as: UTF8.self).split(whereSeparator: \.isNewline) {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { continue }
            fields[parts[0].lowercased()] = String(parts[1].drop { $0 == " " })
        }
        return fields
    }
}
