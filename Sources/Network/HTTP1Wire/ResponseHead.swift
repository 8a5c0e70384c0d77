import HTTP

/// The head of a response over HTTP/1.1, as bytes.
public enum ResponseHead {
    public static let proceed = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)

    /// Returns the head.
    /// - Parameter length: the number of bytes of the body; for HEAD, of the body that GET has.
    /// - Parameter closes: whether the connection ends after this response.
    public static func bytes(_ response: Response, length: Int, date: [UInt8], closes: Bool) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(256)
        append("HTTP/1.1 ", to: &bytes)
        bytes += String(response.status).utf8
        bytes.append(Byte.space)
        append(reason(response.status), to: &bytes)
        append("\r\n", to: &bytes)
        let hasLength = response.fields.withRun { run in
            var hasLength = false
            for (name, value) in run {
                if name.elementsEqual("content-length".utf8) { hasLength = true }
                bytes += name
                append(": ", to: &bytes)
                if value.allSatisfy(Byte.isOfLine) {
                    bytes += value
                } else {
                    // A line end in a value would begin another field.
                    bytes += value.lazy.map { Byte.isOfLine($0) ? $0 : Byte.space }
                }
                append("\r\n", to: &bytes)
            }
            return hasLength
        }
        if !hasLength, response.mayHaveContent {
            append("content-length: ", to: &bytes)
            bytes += String(length).utf8
            append("\r\n", to: &bytes)
        }
        append("date: ", to: &bytes)
        bytes += date
        append(closes ? "\r\nconnection: close\r\n\r\n" : "\r\n\r\n", to: &bytes)
        return bytes
    }

    /// Appends a text without an array of its own.
    private static func append(_ text: StaticString, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// The reason phrase. It has no meaning, but some clients count an answer without one as failed.
    private static func reason(_ status: Int) -> StaticString {
        switch status {
        case 200: "OK"
        case 201: "Created"
        case 202: "Accepted"
        case 204: "No Content"
        case 304: "Not Modified"
        case ..<400: "Success"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 413: "Content Too Large"
        case 429: "Too Many Requests"
        case ..<500: "Request Refused"
        case 503: "Service Unavailable"
        default: "Server Error"
        }
    }
}
