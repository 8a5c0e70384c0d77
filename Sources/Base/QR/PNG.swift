/// A QR code as a PNG image (PNG specification, third edition; RFC 1950 and 1951).
///
/// Mail readers show PNG images, but most do not show SVG. The image has one bit for each pixel.
/// The pixels are not compressed, because a code of ordinary size has only about ten kilobytes.
extension QRCode {
    /// The number of pixels of one module in each direction.
    private static let scale = 4

    /// A PNG image in black on white, with the light margin that readers need.
    public func png() -> [UInt8] {
        let side = (width + 2 * Self.quiet) * Self.scale
        let header =
            PNG.bigEndian(UInt32(side)) + PNG.bigEndian(UInt32(side))
            // Depth 1, greyscale, and the only methods that exist for compression, filter and
            // interlacing.
            + [1, 0, 0, 0, 0]
        return PNG.signature + PNG.chunk("IHDR", header) + PNG.chunk("IDAT", PNG.zlib(scanlines(side)))
            + PNG.chunk("IEND", [])
    }

    /// The rows of pixels, each after its filter type 0. A light pixel is 1.
    private func scanlines(_ side: Int) -> [UInt8] {
        var lines: [UInt8] = []
        for y in -Self.quiet..<width + Self.quiet {
            var line = [UInt8](repeating: 0, count: 1 + (side + 7) / 8)
            for pixel in 0..<side where !isDark(x: pixel / Self.scale - Self.quiet, y: y) {
                line[1 + pixel / 8] |= 0x80 >> UInt8(pixel % 8)
            }
            for _ in 0..<Self.scale { lines += line }
        }
        return lines
    }
}

/// The container of a PNG image.
enum PNG {
    static let signature: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
    /// The largest content of a stored block (RFC 1951 §3.2.4).
    private static let largestBlock = 65_535

    static func chunk(_ type: String, _ content: [UInt8]) -> [UInt8] {
        let body = Array(type.utf8) + content
        return bigEndian(UInt32(content.count)) + body + bigEndian(crc32(body))
    }

    /// The content in the zlib format, in blocks that are stored without compression.
    static func zlib(_ content: [UInt8]) -> [UInt8] {
        var stream: [UInt8] = [0x78, 0x01]
        var start = 0
        repeat {
            let end = min(start + largestBlock, content.count)
            let count = UInt16(end - start)
            stream.append(end == content.count ? 1 : 0)
            for half in [count, ~count] { stream += [UInt8(half & 0xff), UInt8(half >> 8)] }
            stream += content[start..<end]
            start = end
        } while start < content.count
        return stream + bigEndian(adler32(content))
    }

    static func bigEndian(_ number: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }

    /// The CRC-32 of a chunk (PNG specification, annex D).
    static func crc32(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(~0) { sum, byte in
            (0..<8).reduce(sum ^ UInt32(byte)) { rest, _ in
                rest & 1 == 1 ? 0xedb8_8320 ^ (rest >> 1) : rest >> 1
            }
        }
    }

    /// The checksum of a zlib stream (RFC 1950 §8.2).
    static func adler32(_ bytes: [UInt8]) -> UInt32 {
        var (low, high): (UInt32, UInt32) = (1, 0)
        for byte in bytes {
            low = (low + UInt32(byte)) % 65_521
            high = (high + low) % 65_521
        }
        return high << 16 | low
    }
}
