import CNghttp2
import HTTP

// The callbacks of libnghttp2. They are global functions, because libnghttp2 calls them on the loop
// of the session, and a closure might be checked for another actor. Each finds its `Session` by the
// user pointer and appends an event. Invariant: none of them calls libnghttp2, which does not allow
// most calls from within a callback. Tests: `RoundTripTests`, `HostileTests`, `HeaderWorkTests`.

/// Calls `body` with the session that called nghttp2. The session outlives the call, so no
/// reference is counted.
private func with(_ pointer: UnsafeMutableRawPointer?, _ body: (Session) -> Int32) -> Int32 {
    guard let pointer else { return failure }
    return Unmanaged<Session>.fromOpaque(pointer)._withUnsafeGuaranteedRef(body)
}

private let failure = NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
/// libnghttp2 resets the stream, and reports no more of the header block.
private let refusal = NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue

nonisolated func noteBeginHeaders(
    _ session: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ user: UnsafeMutableRawPointer?
) -> Int32 {
    with(user) { owner in
        owner.beginBlock()
        return 0
    }
}

nonisolated func noteHeader(
    _ session: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ name: UnsafePointer<UInt8>?,
    _ nameLength: Int, _ value: UnsafePointer<UInt8>?, _ valueLength: Int, _ flags: UInt8,
    _ user: UnsafeMutableRawPointer?
) -> Int32 {
    with(user) { owner in
        guard let name, let value, let frame else { return failure }
        let goesOn = owner.add(
            UnsafeBufferPointer(start: name, count: nameLength), UnsafeBufferPointer(start: value, count: valueLength),
            stream: frame.pointee.hd.stream_id)
        return goesOn ? 0 : refusal
    }
}

/// Counts a field with forbidden characters, which libnghttp2 drops.
nonisolated func noteInvalidHeader(
    _ session: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ name: UnsafePointer<UInt8>?,
    _ nameLength: Int, _ value: UnsafePointer<UInt8>?, _ valueLength: Int, _ flags: UInt8,
    _ user: UnsafeMutableRawPointer?
) -> Int32 {
    with(user) { owner in
        guard let frame else { return failure }
        return owner.addIgnored(nameLength + valueLength, stream: frame.pointee.hd.stream_id) ? 0 : refusal
    }
}

/// Records a frame with an error. If the error concerns only its stream, libnghttp2 resets the
/// stream.
nonisolated func noteInvalidFrame(
    _ session: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ code: Int32, _ user: UnsafeMutableRawPointer?
) -> Int32 {
    with(user) { owner in
        guard let frame else { return failure }
        owner.record(.refused(stream: frame.pointee.hd.stream_id))
        return 0
    }
}

nonisolated func noteFrame(
    _ session: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ user: UnsafeMutableRawPointer?
) -> Int32 {
    with(user) { owner in
        guard let frame else { return failure }
        let head = frame.pointee.hd
        let isFlagged = head.flags & 1 != 0  // END_STREAM and ACK are the same bit.
        switch UInt32(head.type) {
        case NGHTTP2_HEADERS.rawValue:
            owner.endBlock(head.stream_id)
            if isFlagged { owner.record(.ended(stream: head.stream_id)) }
        case NGHTTP2_DATA.rawValue:
            if isFlagged { owner.record(.ended(stream: head.stream_id)) }
        case NGHTTP2_SETTINGS.rawValue:
            owner.record(isFlagged ? .settingsAcknowledged : .settings)
        case NGHTTP2_PING.rawValue where isFlagged:
            let payload = withUnsafeBytes(of: frame.pointee.ping.opaque_data) { $0.loadUnaligned(as: UInt64.self) }
            owner.record(.pingAcknowledged(payload))
        case NGHTTP2_GOAWAY.rawValue:
            let goAway = frame.pointee.goaway
            let debug = UnsafeBufferPointer(start: goAway.opaque_data, count: min(goAway.opaque_data_len, 512))
            owner.noteGoAway(goAway.last_stream_id, goAway.error_code, debug)
        default: break
        }
        return 0
    }
}

nonisolated func noteData(
    _ session: OpaquePointer?, _ flags: UInt8, _ stream: Int32, _ bytes: UnsafePointer<UInt8>?, _ count: Int,
    _ user: UnsafeMutableRawPointer?
) -> Int32 {
    with(user) { owner in
        if count > 0 { owner.noteData(stream, UnsafeBufferPointer(start: bytes, count: count)) }
        return 0
    }
}

nonisolated func noteClosed(
    _ session: OpaquePointer?, _ stream: Int32, _ code: UInt32, _ user: UnsafeMutableRawPointer?
) -> Int32 {
    with(user) { owner in
        owner.record(.closed(stream: stream, code: code))
        return 0
    }
}

nonisolated func noteSent(
    _ session: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ user: UnsafeMutableRawPointer?
) -> Int32 {
    with(user) { owner in
        guard let frame else { return failure }
        let head = frame.pointee.hd
        switch UInt32(head.type) {
        case NGHTTP2_DATA.rawValue:
            owner.record(head.flags & 1 != 0 ? .sentEnd(stream: head.stream_id) : .sentData(stream: head.stream_id))
        case NGHTTP2_HEADERS.rawValue where head.flags & 1 != 0:
            owner.record(.sentEnd(stream: head.stream_id))
        case NGHTTP2_RST_STREAM.rawValue: owner.record(.sentReset(stream: head.stream_id))
        default: break
        }
        return 0
    }
}

/// Gives libnghttp2 the next bytes of a body.
nonisolated func readBody(
    _ session: OpaquePointer?, _ stream: Int32, _ buffer: UnsafeMutablePointer<UInt8>?, _ room: Int,
    _ flags: UnsafeMutablePointer<UInt32>?, _ source: UnsafeMutablePointer<nghttp2_data_source>?,
    _ user: UnsafeMutableRawPointer?
) -> Int {
    guard let pointer = source?.pointee.ptr, let buffer, let flags else { return Int(failure) }
    return Unmanaged<BodySource>.fromOpaque(pointer)._withUnsafeGuaranteedRef { body in
        let count = body.take(into: UnsafeMutableBufferPointer(start: buffer, count: room))
        if body.isSent { flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
        return count
    }
}

/// The callbacks and options that all sessions share.
enum SessionSetup {
    // Guard: all three are made once, and after that nghttp2 only copies from them.
    nonisolated(unsafe) static let callbacks: OpaquePointer? = {
        var callbacks: OpaquePointer?
        nghttp2_session_callbacks_new(&callbacks)
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, noteBeginHeaders)
        nghttp2_session_callbacks_set_on_header_callback(callbacks, noteHeader)
        nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, noteInvalidHeader)
        nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, noteInvalidFrame)
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, noteFrame)
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, noteData)
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, noteClosed)
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, noteSent)
        return callbacks
    }()

    // Guard: as above.
    nonisolated(unsafe) static let server = options()

    // Guard: as above.
    nonisolated(unsafe) static let client: OpaquePointer? = {
        let option = options()
        // nghttp2 assumes 100 until the peer's SETTINGS come. APNs allows one.
        nghttp2_option_set_peer_max_concurrent_streams(option, 1)
        return option
    }()

    private static func options() -> OpaquePointer? {
        var option: OpaquePointer?
        nghttp2_option_new(&option)
        nghttp2_option_set_max_settings(option, 32)
        nghttp2_option_set_max_continuations(option, 8)
        nghttp2_option_set_max_outbound_ack(option, 128)
        nghttp2_option_set_no_closed_streams(option, 1)
        return option
    }
}

extension HeaderBlock {
    mutating func add(
        _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>, maxBytes: Int, maxCount: Int
    ) {
        // RFC 9113 §6.5.2: 32 for each field. Fields above the limit are not stored, because one
        // byte of HPACK can mean 4 KiB.
        measure(name.count + value.count)
        guard size <= maxBytes, count <= maxCount else {
            fault = .headSize
            return
        }
        guard name.first == UInt8(ascii: ":") else {
            if name.count == 14, name.elementsEqual("content-length".utf8) {
                contentLength = Int(String(decoding: value, as: UTF8.self))
            }
            fields.add(name, value)
            return
        }
        // nghttp2 passes only known pseudo-fields, each once. The length and the second letter
        // distinguish them.
        switch (name.count, name[1]) {
        case (7, UInt8(ascii: "m")):
            guard !Self.isGet(value) else {
                method = "GET"
                return
            }
            method = String(decoding: value, as: UTF8.self)
            isHead = method == "HEAD"
        case (5, UInt8(ascii: "p")):
            hasPath = true
            guard let mark = value.firstIndex(of: UInt8(ascii: "?")) else {
                path = String(decoding: value, as: UTF8.self)
                return
            }
            path = String(decoding: value[..<mark], as: UTF8.self)
            query = String(decoding: value[(mark + 1)...], as: UTF8.self)
        case (7, UInt8(ascii: "s")) where name[2] == UInt8(ascii: "t"):
            status = Int(String(decoding: value, as: UTF8.self))
        default: break
        }
    }

    /// Avoids making a string for the most common method.
    private static func isGet(_ method: UnsafeBufferPointer<UInt8>) -> Bool {
        method.count == 3 && method[0] == UInt8(ascii: "G") && method[1] == UInt8(ascii: "E")
            && method[2] == UInt8(ascii: "T")
    }
}
