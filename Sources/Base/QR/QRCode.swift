import CQREncode

/// A text as a QR code with error correction level M: up to a seventh of it may be unreadable.
public struct QRCode: Sendable, Equatable {
    public enum Failure: Error, Sendable, Equatable {
        /// The text is empty, or contains a NUL.
        case unfit
        case tooLong
    }

    /// The number of modules in a row, without the quiet zone.
    public let width: Int
    /// The modules row by row; true is dark.
    private let modules: [Bool]

    /// The light margin that readers need, in modules.
    static let quiet = 4

    public init(_ text: String) throws(Failure) {
        guard !text.isEmpty, !text.utf8.contains(0) else { throw .unfit }
        guard let code = QRcode_encodeString(text, 0, QR_ECLEVEL_M, QR_MODE_8, 1) else { throw .tooLong }
        defer { QRcode_free(code) }
        let width = Int(code.pointee.width)
        self.width = width
        // The lowest bit is the colour; the encoder uses the others.
        modules = UnsafeBufferPointer(start: code.pointee.data, count: width * width).map { $0 & 1 == 1 }
    }

    /// Whether a module is dark. It is false outside the code, so the quiet zone needs no special
    /// case.
    public func isDark(x: Int, y: Int) -> Bool {
        (0..<width).contains(x) && (0..<width).contains(y) && modules[y * width + x]
    }
}
