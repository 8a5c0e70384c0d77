import Bytes
import COpenSSL
import JSON
import TestSupport
import Testing

@testable import TLS

/// A client with a new connection for each request, which resumes the TLS session of the last one.
final class ReturningClient {
    struct Answer {
        let isResumed: Bool
        let body: JSONObject

        var status: Int64? { body["status"]?.integer }
    }

    private let context: TLSClientContext
    private let port: UInt16
    private var state: OpaquePointer?

    init(_ api: APIClient) throws {
        let caller = api.caller
        port = caller.port
        context = try TLSClientContext(
            roots: .pem(try TextFile.bytes(caller.authorityPath)),
            certificateChainPEM: try caller.certificatePath.map { try TextFile.bytes($0) },
            privateKeyPEM: try caller.keyPath.map { Secret(try TextFile.bytes($0)) })
    }

    deinit { SSL_SESSION_free(state) }

    /// Sends a request without a body if it is GET, and with an empty object otherwise.
    func send(_ method: String, _ path: String) throws -> Answer {
        let wire = try Wire(to: port)
        let tls = try TLSSession(client: context, fd: wire.descriptor, host: "localhost")
        if let state { try #require(SSL_set_session(tls.session, state) == 1) }
        guard case .complete = tls.handshake() else { throw Child.Problem(description: "the handshake failed") }
        var fields = Frames.post(path, length: 2)
        fields[0].1 = method
        var request = Frames.preface + Frames.settings
        if method == "GET" {
            request += Frames.headers(Array(fields.prefix(4)), flags: 5)
        } else {
            request += Frames.headers(fields, flags: 4) + Frames.data(Array("{}".utf8), flags: 1)
        }
        guard case .bytes(request.count) = request.withUnsafeBytes({ tls.write($0) }) else {
            throw Child.Problem(description: "the request was not written")
        }
        let body = try JSONReader.read(try Self.body(tls)).object
        SSL_SESSION_free(state)
        state = SSL_SESSION_dup(SSL_get_session(tls.session))
        return Answer(isResumed: tls.isResumed, body: try #require(body))
    }

    /// Reads frames until the answer ends, and returns its body.
    private static func body(_ tls: TLSSession) throws -> [UInt8] {
        var body: [UInt8] = []
        var pending: [UInt8] = []
        while true {
            while pending.count >= 9 {
                let end = 9 + (Int(pending[0]) << 16 | Int(pending[1]) << 8 | Int(pending[2]))
                guard pending.count >= end else { break }
                let (type, flags) = (pending[3], pending[4])
                if type == 0 { body += pending[9..<end] }
                pending.removeFirst(end)
                // END_STREAM of DATA or HEADERS.
                if type <= 1, flags & 1 == 1 { return body }
            }
            let count = withUnsafeTemporaryAllocation(byteCount: 32_768, alignment: 1) { buffer -> Int? in
                guard case .bytes(let count) = tls.read(into: buffer) else { return nil }
                pending += buffer[..<count]
                return count
            }
            if count == nil { throw Child.Problem(description: "the answer did not arrive") }
        }
    }
}
