/// A fault for which a server refuses a request before its handler sees it. The raw value names the
/// rule that the request breaks, or the reason.
public enum RequestFault: String, Sendable, CaseIterable {
    /// Not method, target and version with one space between them.
    case requestLine = "request_line"
    /// Not a path: another form of target, or a character that no URL has.
    case target
    /// An HTTP version other than 1.0 and 1.1.
    case version
    /// A CR without LF, or an LF without CR.
    case lineEnd = "line_end"
    case controlCharacter = "control_character"
    /// No colon, a space before it, or a character that no name has.
    case fieldName = "field_name"
    /// A field that continues on the next line.
    case foldedField = "folded_field"
    /// No `Host`, more than one, or one that is neither a name nor an address.
    case host
    /// A `Host` of another server.
    case authority
    /// More than one `Content-Length`, or one that is not a plain number.
    case contentLength = "content_length"
    /// Anything but one `chunked`, or `Content-Length` beside it, or HTTP/1.0.
    case transferEncoding = "transfer_encoding"
    /// An expectation other than `100-continue`.
    case expectation = "expect"
    case upgrade
    /// A faulty size, too long extensions, or a chunk without its end.
    case chunk
    /// Fields behind the body.
    case trailers
    /// Too many fields, or too many bytes in the head.
    case headSize = "head_size"
    /// A body above the limit.
    case bodySize = "body_size"
    /// The rest did not come in time.
    case late
    /// Too many requests of the connection are in work. Nothing was done for this one.
    case busy

    public var status: Int {
        switch self {
        case .requestLine, .target, .lineEnd, .controlCharacter, .fieldName, .foldedField, .host, .contentLength,
            .transferEncoding, .upgrade, .chunk, .trailers:
            400
        case .late: 408
        case .bodySize: 413
        case .expectation: 417
        case .authority: 421
        case .headSize: 431
        case .busy: 503
        case .version: 505
        }
    }
}
