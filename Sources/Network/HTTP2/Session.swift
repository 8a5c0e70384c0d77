import CNghttp2
import HTTP

/// An event from nghttp2. Its callbacks only append events. The owner acts on them after nghttp2
/// has returned, so nghttp2 is never called from within a callback.
enum SessionEvent {
    /// `block` is an index into the scratch's `blocks`.
    case headers(stream: Int32, block: Int)
    /// The bytes as a range of the scratch's `inbound`.
    case data(stream: Int32, Range<Int>)
    case ended(stream: Int32)
    /// The body has a fault, over HTTP/1.1.
    case malformed(stream: Int32, RequestFault)
    /// The stream is being reset: its header block exceeds the limits or is malformed, or another
    /// of its frames has an error.
    case refused(stream: Int32)
    case closed(stream: Int32, code: UInt32)
    case sentData(stream: Int32)
    /// Our side of the stream was sent completely.
    case sentEnd(stream: Int32)
    case sentReset(stream: Int32)
    case settings
    case settingsAcknowledged
    case pingAcknowledged(UInt64)
    /// `debug` is a range of the scratch's `inbound`.
    case goAway(lastStream: Int32, code: UInt32, debug: Range<Int>)
}

/// A header block while it arrives. We count its size ourselves, because nghttp2 only advertises
/// the limits.
struct HeaderBlock {
    var method = ""
    /// Whether the method is HEAD, whose answer has no body.
    var isHead = false
    var path = ""
    /// Whether there is a `:path`; only CONNECT has none.
    var hasPath = false
    var query: String?
    var status: Int?
    var contentLength: Int?
    var fields = Fields()
    /// The fault for which a server refuses the request. It is `headSize` if the block exceeds the
    /// limits; then further fields are not stored.
    var fault: RequestFault?
    /// Whether it is a 1xx response, which another block follows.
    var isInterim: Bool { (status ?? 200) < 200 }
    var size = 0
    var count = 0

    /// Counts a field as RFC 9113 §6.5.2 does: the bytes of name and value, and 32 more.
    mutating func measure(_ bytes: Int) {
        size += bytes + 32
        count += 1
    }
}

/// The work that header blocks have made, in all sessions that share a scratch.
struct HeaderWork: Equatable {
    /// Fields that were decoded and validated, and their size as RFC 9113 §6.5.2 counts it.
    var fields = 0
    var bytes = 0
    /// Header blocks that were cut off.
    var refused = 0
}

/// The source of a message's body while it is sent. nghttp2 has only a pointer to it, so it must
/// live until the stream is closed. Exclusivity checks are off for a property that no other code
/// can access while it changes.
class BodySource {
    @exclusivity(unchecked) final var outgoing: [UInt8] = []
    private final var offset = 0
    final var isSent: Bool { offset == outgoing.count }

    /// Copies the next bytes into `room`, and returns their number.
    final func take(into room: UnsafeMutableBufferPointer<UInt8>) -> Int {
        let count = min(room.count, outgoing.count - offset)
        outgoing.withUnsafeBufferPointer { bytes in
            if count > 0, let to = room.baseAddress, let from = bytes.baseAddress {
                to.update(from: from + offset, count: count)
            }
        }
        offset += count
        return count
    }

    /// Appends at most `most` bytes. Returns whether all bytes were taken.
    final func take(_ most: Int, into output: inout [UInt8]) -> Bool {
        let end = min(offset + max(most, 0), outgoing.count)
        output.append(contentsOf: outgoing[offset..<end])
        offset = end
        return isSent
    }
}

/// The memory that one call of nghttp2 needs. The sessions of one loop share it, because each
/// session's owner handles its events before the next session is called. So an idle connection
/// holds no memory for events.
final class SessionScratch {
    // Unchecked exclusivity: no code that runs during a change can access these again.
    @exclusivity(unchecked) private(set) var events: [SessionEvent] = []
    @exclusivity(unchecked) private var blocks: [HeaderBlock] = []
    /// The bytes that the ranges in the events refer to.
    @exclusivity(unchecked) private(set) var inbound: [UInt8] = []
    let fields = FieldList()
    @exclusivity(unchecked) var headerWork = HeaderWork()

    func record(_ event: SessionEvent) { events.append(event) }

    /// Records a header block, and leaves an empty one in its place. It is moved, because a copy is
    /// measurably slower.
    func record(_ stream: Int32, _ block: inout HeaderBlock) {
        record(.headers(stream: stream, block: blocks.count))
        blocks.append(HeaderBlock())
        swap(&blocks[blocks.count - 1], &block)
    }

    /// Stores the bytes, and returns their range.
    func keep(_ bytes: UnsafeBufferPointer<UInt8>) -> Range<Int> {
        let start = inbound.count
        inbound.append(contentsOf: bytes)
        return start..<inbound.count
    }

    /// Returns the block of an event. It may be called once for each event.
    func take(_ index: Int) -> HeaderBlock {
        var block = HeaderBlock()
        swap(&blocks[index], &block)
        return block
    }

    func clear() {
        events.removeAll(keepingCapacity: events.capacity <= 4096)
        if !blocks.isEmpty { blocks.removeAll(keepingCapacity: blocks.capacity <= 1024) }
        if !inbound.isEmpty { inbound.removeAll(keepingCapacity: inbound.capacity <= 65_536) }
    }
}

/// A session of libnghttp2. It owns the C object, which points back without owning.
///
/// Purpose: all work of a connection with libnghttp2, which does framing, HPACK and flow control
/// and no I/O. `receive` takes bytes, and `send` gives bytes.
///
/// Header blocks have two limits. A list above the first limit is still decoded, so that it can be
/// answered with 431. The block is cut off if it exceeds twice the limit, or if one call of
/// `receive` has decoded sixteen lists' worth. libnghttp2 then resets the stream, and continues
/// through the block only to keep its HPACK table correct. It does not report names and values any
/// more.
///
/// Invariants: no method that calls libnghttp2 runs within a callback; the callbacks only record.
/// The `BodySource` of a stream outlives the stream. Risk: libnghttp2 ends a connection by itself
/// if a peer exceeds the stream limit by one. So it gets a higher limit, and the owner enforces the
/// real one (`submitSettings`). Tests: `RoundTripTests`, `HeaderWorkTests`, `StreamLimitTests`,
/// `HostileTests`.
final class Session {
    enum Role { case server, client }

    private let session: OpaquePointer
    private let scratch: SessionScratch
    /// The block that is arriving. Unchecked exclusivity: no code that runs during a change can
    /// access it again.
    @exclusivity(unchecked) private var block = HeaderBlock()
    private let headerBytes: Int
    private let headerCount: Int
    private let blockFields: Int
    /// The most bytes to which the arriving block is decoded.
    @exclusivity(unchecked) private var blockBytes = 0
    /// Bytes decoded by the current call of `receive`, without that block.
    @exclusivity(unchecked) private var decodedNow = 0
    /// Charges for header blocks, until the owner takes them.
    @exclusivity(unchecked) private var headerCharges = 0
    /// Values of MAX_CONCURRENT_STREAMS in SETTINGS that are still to be sent.
    private var announced: [UInt32] = []

    init(role: Role, headerBytes: Int, headerCount: Int, scratch: SessionScratch) {
        self.scratch = scratch
        self.headerBytes = headerBytes
        self.headerCount = headerCount
        blockFields = 2 * headerCount
        var made: OpaquePointer?
        let code: Int32
        // The back pointer can be set only after the object exists.
        switch role {
        case .server: code = nghttp2_session_server_new2(&made, SessionSetup.callbacks, nil, SessionSetup.server)
        case .client: code = nghttp2_session_client_new2(&made, SessionSetup.callbacks, nil, SessionSetup.client)
        }
        // It fails only if memory runs out, and Swift ends the process for that everywhere else.
        guard code == 0, let made else { fatalError("nghttp2: out of memory") }
        session = made
        nghttp2_session_set_user_data(session, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { nghttp2_session_del(session) }

    // MARK: In

    /// Gives received bytes to libnghttp2. Returns false after an error that ends the connection.
    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        decodedNow = 0
        let isRead =
            nghttp2_session_mem_recv(session, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count) >= 0
        if !isRead { dropEvents() }
        return isRead
    }

    /// Nobody handles the events of a session that has failed. The next session of the loop must not
    /// find them: they would be taken for frames of its peer, with its certificate.
    private func dropEvents() { scratch.clear() }

    /// Returns the charges for the header blocks since the last call.
    func takeHeaderCharges() -> Int {
        guard headerCharges > 0 else { return 0 }
        defer { headerCharges = 0 }
        return headerCharges
    }

    func record(_ event: SessionEvent) { scratch.record(event) }

    func noteData(_ stream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        record(.data(stream: stream, scratch.keep(bytes)))
    }

    func noteGoAway(_ lastStream: Int32, _ code: UInt32, _ debug: UnsafeBufferPointer<UInt8>) {
        record(.goAway(lastStream: lastStream, code: code, debug: scratch.keep(debug)))
    }

    func beginBlock() {
        // The block before was malformed and has not ended.
        if block.count > 0 { cutOffBlock() }
        blockBytes = min(2 * headerBytes, 16 * headerBytes - decodedNow)
    }

    /// Adds a field. Returns false if the block must be cut off.
    func add(
        _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>, stream: Int32
    ) -> Bool {
        block.add(name, value, maxBytes: headerBytes, maxCount: headerCount)
        return goesOn(stream)
    }

    /// Counts a field that libnghttp2 drops because of its characters: it has been decoded and
    /// validated like the others.
    func addIgnored(_ bytes: Int, stream: Int32) -> Bool {
        block.measure(bytes)
        return goesOn(stream)
    }

    private func goesOn(_ stream: Int32) -> Bool {
        if block.size <= blockBytes, block.count <= blockFields { return true }
        cutOffBlock()
        record(.refused(stream: stream))
        return false
    }

    func endBlock(_ stream: Int32) {
        chargeBlock()
        scratch.record(stream, &block)
    }

    private func cutOffBlock() {
        chargeBlock()
        scratch.headerWork.refused += 1
        block = HeaderBlock()
    }

    private func chargeBlock() {
        decodedNow += block.size
        scratch.headerWork.fields += block.count
        scratch.headerWork.bytes += block.size
        guard block.size > AbuseBudget.freeHeaderBytes else { return }
        headerCharges += (block.size - AbuseBudget.freeHeaderBytes) / AbuseBudget.headerBytesPerCharge
    }

    // MARK: Out

    /// Appends the bytes to send, until `output` has `enough` or there are no more. Returns false
    /// after a failure that ends the connection.
    func send(into output: inout [UInt8], enough: Int) -> Bool {
        while output.count < enough {
            var bytes: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &bytes)
            guard count >= 0 else {
                dropEvents()
                return false
            }
            guard count > 0, let bytes else { return true }
            output.append(contentsOf: UnsafeBufferPointer(start: bytes, count: count))
            if !announced.isEmpty { announceStreams(&output, output.count - count) }
        }
        return true
    }

    /// Replaces the stream limit in a SETTINGS frame, which begins at `start`, by the announced
    /// one.
    private func announceStreams(_ output: inout [UInt8], _ start: Int) {
        let isSettings = output[start + 3] == FrameScanner.Head.settings
        guard isSettings, output[start + 4] & FrameScanner.Head.acknowledgement == 0 else { return }
        var at = start + 9
        while at + 6 <= output.count {
            let id = UInt32(output[at]) << 8 | UInt32(output[at + 1])
            if id == NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue {
                let value = announced.removeFirst()
                for byte in 0..<4 { output[at + 2 + byte] = UInt8(truncatingIfNeeded: value >> (24 - 8 * byte)) }
                return
            }
            at += 6
        }
    }

    /// Whether the connection can end: nothing more is expected, and nothing is left to send.
    var isFinished: Bool { nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0 }

    var wantsWrite: Bool { nghttp2_session_want_write(session) != 0 }

    /// The number of streams above the announced limit that libnghttp2 tolerates. Above that, it
    /// ends the connection.
    private static let streamMargin: UInt32 = 1000

    /// Sends SETTINGS. The peer is told `streams`, which the owner enforces: libnghttp2 would end
    /// the connection for a single stream more.
    func submitSettings(_ settings: [(nghttp2_settings_id, UInt32)], streams: UInt32? = nil) {
        var settings = settings
        if let streams {
            let (sum, isOver) = streams.addingReportingOverflow(Self.streamMargin)
            settings.append((NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, isOver ? .max : sum))
            announced.append(streams)
        }
        let entries = settings.map { nghttp2_settings_entry(settings_id: Int32($0.0.rawValue), value: $0.1) }
        nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count)
    }

    /// Sets the connection window: the number of bytes that may arrive on all streams before we
    /// have processed them.
    func openWindow(_ connectionWindow: Int32) {
        nghttp2_session_set_local_window_size(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, connectionWindow)
    }

    /// - Parameter length: the number of bytes of the body; for HEAD, of the body that GET has.
    func submitResponse(_ stream: Int32, _ response: Response, length: Int, date: [UInt8], source: BodySource) {
        let fields = scratch.fields
        fields.clear()
        fields.add(":status", number: response.status)
        response.fields.withRun { run in
            var hasLength = false
            for (name, value) in run {
                if name.count == 14, name.elementsEqual("content-length".utf8) { hasLength = true }
                fields.add(name, value)
            }
            if !hasLength, response.mayHaveContent {
                fields.add("content-length", number: length)
            }
            date.withUnsafeBufferPointer { date in
                fields.add("date", date)
                withProvider(source) { _ = nghttp2_submit_response(session, stream, fields.start, fields.count, $0) }
            }
        }
    }

    /// Returns the number of the new stream, or a negative error of nghttp2.
    func submitRequest(_ request: ClientRequest, scheme: String, source: BodySource) -> Int32 {
        let fields = scratch.fields
        fields.clear()
        let head = Fields([
            .init(":method", request.method), .init(":scheme", scheme), .init(":authority", request.authority),
            .init(":path", request.path),
        ])
        return head.withRun { head in
            for (name, value) in head { fields.add(name, value) }
            return request.fields.withRun { run in
                for (name, value) in run { fields.add(name, value) }
                return submit(fields, source)
            }
        }
    }

    /// Submits a request that is made of a form.
    func submitRequest(_ form: RequestForm, _ request: FormedRequest, source: BodySource) -> Int32 {
        let fields = scratch.fields
        fields.clear()
        return form.head.withRun { head in
            for (name, value) in head { fields.add(name, value) }
            return request.own.withRun { own in
                // The path is a pseudo-field, and those must come before all others.
                var own = own
                if let path = own.next() { fields.add(path.name, path.value, indexed: false) }
                return form.rest.withRun { rest in
                    for (name, value) in rest { fields.add(name, value) }
                    for (name, value) in own { fields.add(name, value, indexed: false) }
                    return submit(fields, source)
                }
            }
        }
    }

    private func submit(_ fields: FieldList, _ source: BodySource) -> Int32 {
        withProvider(source) { nghttp2_submit_request(session, nil, fields.start, fields.count, $0, nil) }
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

    /// Sends a GOAWAY that refuses nothing yet.
    func submitShutdownNotice() { nghttp2_submit_shutdown_notice(session) }

    /// The last stream that was processed or is being processed.
    var lastProcessed: Int32 { nghttp2_session_get_last_proc_stream_id(session) }

    /// Sends a GOAWAY that refuses the streams above `lastStream`.
    func submitGoAway(_ code: UInt32, lastStream: Int32) {
        nghttp2_submit_goaway(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), lastStream, code, nil, 0)
    }

    /// Sends a GOAWAY, and stops reading.
    func terminate(_ code: nghttp2_error_code) { nghttp2_session_terminate_session(session, code.rawValue) }

    func remoteSetting(_ id: nghttp2_settings_id) -> UInt32 { nghttp2_session_get_remote_settings(session, id) }
}
