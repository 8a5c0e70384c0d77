import CQREncode

/// A text as a QR code, with error correction M: a seventh of it may be unreadable.
public struct QRCode: Sendable, Equatable {
    public enum Failure: Error, Sendable, Equatable {
        /// Empty, or with a NUL in it.
        case unfit
        case tooLong
    }

    /// Modules in a row, without the quiet zone.
    public let width: Int
    /// Row by row.
    private let modules: [Bool]

    /// The light margin that readers need, in modules.
    static let quiet = 4

    public init(_ text: String) throws(Failure) {
        guard !text.isEmpty, !text.utf8.contains(0) else { throw .unfit }
        guard let code = QRcode_encodeString(text, 0, QR_ECLEVEL_M, QR_MODE_8, 1) else { throw .tooLong }
        defer { QRcode_free(code) }
        let width = Int(code.pointee.width)
        self.width = width
        // The lowest bit says dark; the others are the encoder's own.
        modules = UnsafeBufferPointer(start: code.pointee.data, count: width * width).map { $0 & 1 == 1 }
    }

    /// False outside of the code, so that the quiet zone needs no rule of its own.
    public func isDark(x: Int, y: Int) -> Bool {
        (0..<width).contains(x) && (0..<width).contains(y) && modules[y * width + x]
    }
}
