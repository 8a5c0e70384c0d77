import CNghttp2
import HTTP

/// What nghttp2 told. Its callbacks only append here; what follows from it is done after nghttp2 has returned, so that
/// nghttp2 is never called from within a callback.
enum SessionEvent {
    case headers(stream: Int32, HeaderBlock)
    /// A range of the scratch's `inbound`.
    case data(stream: Int32, Range<Int>)
    case ended(stream: Int32)
    case closed(stream: Int32, code: UInt32)
    case sentData(stream: Int32)
    /// Our side of the stream has been sent to its end.
    case sentEnd(stream: Int32)
    case sentReset(stream: Int32)
    case settings
    case settingsAcknowledged
    case pingAcknowledged(UInt64)
    case goAway(lastStream: Int32, code: UInt32, debug: [UInt8])
}

/// One header block while it arrives, counted by ourselves: nghttp2 only advertises the limits.
final class HeaderBlock {
    var method: String?
    var path: String?
    var query: String?
    var authority: String?
    var status: Int?
    var contentLength: Int?
    /// Apart until the block is whole: an array of our own can be told how much there will be.
    var collected: [Fields.Field] = []
    var fields: Fields { Fields(collected) }
    /// More than the limits allow; what came after that was not kept.
    var isTooLarge = false
    /// 1xx, which another block follows.
    var isInterim: Bool { (status ?? 200) < 200 }
    var size = 0
    var count = 0
}

/// Where the bytes of a message's body are taken from while it is sent. nghttp2 only has a pointer to it: it must live
/// until the stream has closed.
class BodySource {
    final var outgoing: [UInt8] = []
    final var offset = 0
    final var isSent: Bool { offset == outgoing.count }
}

/// What a call of nghttp2 leaves behind. The sessions of one owner share it, because each looks at what it was told before
/// the next is called; so an idle connection keeps none of it.
final class SessionScratch {
    var events: [SessionEvent] = []
    /// What the ranges of `.data` mean.
    var inbound: [UInt8] = []
    var fields = FieldList()

    func clear() {
        events.removeAll(keepingCapacity: events.capacity <= 4096)
        inbound.removeAll(keepingCapacity: inbound.capacity <= 65_536)
    }
}

/// libnghttp2's session. It owns the C object; the C object points back without owning.
final class Session {
    enum Role { case server, client }

    private let session: OpaquePointer
    private let scratch: SessionScratch
    var block: HeaderBlock?
    let headerBytes: Int
    let headerCount: Int

    init(role: Role, headerBytes: Int, headerCount: Int, scratch: SessionScratch) {
        self.scratch = scratch
        self.headerBytes = headerBytes
        self.headerCount = headerCount
        var made: OpaquePointer?
        let code: Int32
        // The back pointer can only be given when the object exists.
        switch role {
        case .server: code = nghttp2_session_server_new2(&made, SessionSetup.callbacks, nil, SessionSetup.server)
        case .client: code = nghttp2_session_client_new2(&made, SessionSetup.callbacks, nil, SessionSetup.client)
        }
        // It fails for want of memory alone, and Swift ends the process for that everywhere else.
        guard code == 0, let made else { fatalError("nghttp2: out of memory") }
        session = made
        nghttp2_session_set_user_data(session, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { nghttp2_session_del(session) }

    // MARK: In

    /// False when nothing more can be made of what this peer sends.
    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        nghttp2_session_mem_recv(session, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count) >= 0
    }

    func note(_ event: SessionEvent) { scratch.events.append(event) }

    func noteData(_ stream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        let start = scratch.inbound.count
        scratch.inbound.append(contentsOf: bytes)
        note(.data(stream: stream, start..<scratch.inbound.count))
    }

    // MARK: Out

    /// Appends what there is to send, until `output` holds `enough` or there is nothing more. False on a failure that
    /// ends the connection.
    func send(into output: inout [UInt8], enough: Int) -> Bool {
        while output.count < enough {
            var bytes: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &bytes)
            guard count >= 0 else { return false }
            guard count > 0, let bytes else { return true }
            output.append(contentsOf: UnsafeBufferPointer(start: bytes, count: count))
        }
        return true
    }

    /// Nothing will come and nothing is left to send: the connection has had its day.
    var isFinished: Bool { nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0 }

    var wantsWrite: Bool { nghttp2_session_want_write(session) != 0 }

    func submitSettings(_ settings: [(nghttp2_settings_id, UInt32)], connectionWindow: Int32) {
        let entries = settings.map { nghttp2_settings_entry(settings_id: Int32($0.0.rawValue), value: $0.1) }
        nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count)
        nghttp2_session_set_local_window_size(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, connectionWindow)
    }

    func submitResponse(_ stream: Int32, _ response: Response, date: String, source: BodySource) {
        // Out of the shared place for as long as it is filled: every access to it there would be checked.
        var fields = FieldList()
        swap(&fields, &scratch.fields)
        defer { swap(&fields, &scratch.fields) }
        fields.clear()
        fields.add(":status", status: response.status)
        var hasLength = false
        for field in response.fields.all {
            if field.name == "content-length" { hasLength = true }
            fields.add(field.name, field.value)
        }
        fields.add("date", date)
        if !hasLength, response.status >= 200, response.status != 204, response.status != 304 {
            fields.add("content-length", String(response.body.count))
        }
        fields.withEntries { entries, count in
            withProvider(source) { _ = nghttp2_submit_response(session, stream, entries, count, $0) }
        }
    }

    /// The new stream's number, or what nghttp2 says against it.
    func submitRequest(_ request: ClientRequest, scheme: String, source: BodySource) -> Int32 {
        var fields = FieldList()
        swap(&fields, &scratch.fields)
        defer { swap(&fields, &scratch.fields) }
        fields.clear()
        fields.add(":method", request.method)
        fields.add(":scheme", scheme)
        fields.add(":authority", request.authority)
        fields.add(":path", request.path)
        for field in request.fields.all {
            fields.add(field.name, field.value, indexed: !request.neverIndexed.contains(field.name))
        }
        return fields.withEntries { entries, count in
            withProvider(source) { nghttp2_submit_request(session, nil, entries, count, $0, nil) }
        }
    }

    private func withProvider<Value>(
        _ source: BodySource, _ body: (UnsafePointer<nghttp2_data_provider>?) -> Value
    ) -> Value {
        guard !source.outgoing.isEmpty else { return body(nil) }
        var provider = nghttp2_data_provider()
        provider.source.ptr = Unmanaged.passUnretained(source).toOpaque()
        provider.read_callback = readBody
        return body(&provider)
    }

    func submitReset(_ stream: Int32, _ code: nghttp2_error_code) {
        nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, code.rawValue)
    }

    func submitPing(_ payload: UInt64) {
        withUnsafeBytes(of: payload) { bytes in
            _ = nghttp2_submit_ping(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), bytes.bindMemory(to: UInt8.self).baseAddress)
        }
    }

    /// GOAWAY that refuses nothing yet.
    func submitShutdownNotice() { nghttp2_submit_shutdown_notice(session) }

    /// GOAWAY with the last stream that we have begun to work on.
    func submitGoAway(_ code: nghttp2_error_code) {
        nghttp2_submit_goaway(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nghttp2_session_get_last_proc_stream_id(session),
            code.rawValue, nil, 0)
    }

    /// GOAWAY, and nothing is read any more.
    func terminate(_ code: nghttp2_error_code) { nghttp2_session_terminate_session(session, code.rawValue) }

    func remoteSetting(_ id: nghttp2_settings_id) -> UInt32 { nghttp2_session_get_remote_settings(session, id) }
}
