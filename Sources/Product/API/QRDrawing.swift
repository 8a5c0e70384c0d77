import JSON
import QR
import Relay

/// Draws QR codes as SVG images.
public protocol QRDrawing: Sendable {
    /// Returns nil if the text is too long for a code.
    func svg(of text: String) async -> String?
}

/// Draws at once, on the caller's thread.
public struct ImmediateQRDrawing: QRDrawing {
    public init() {}

    public func svg(of text: String) async -> String? { try? QRCode(text).svg() }
}

extension VerbCall {
    func qr(_ uri: String) async throws(Refusal) -> JSONValue {
        // This fails only if an origin or display name has thousands of characters.
        guard let svg = await api.drawing.svg(of: uri) else { throw .broken }
        return .string(svg)
    }
}
