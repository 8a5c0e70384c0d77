import CNghttp2
import HTTP

/// The fields of a message in the form that nghttp2 needs: pointers to the bytes. It is filled for
/// one call of nghttp2, which copies what it keeps, and then reused. The bytes are not copied here,
/// so they must live until that call returns.
final class FieldList {
    private var entries = UnsafeMutablePointer<nghttp2_nv>.allocate(capacity: 16)
    private var room = 16
    private(set) var count = 0
    /// Memory for numbers in decimal.
    private let digits = UnsafeMutablePointer<UInt8>.allocate(capacity: 64)
    private var digitsUsed = 0

    deinit {
        entries.deallocate()
        digits.deallocate()
    }

    var start: UnsafePointer<nghttp2_nv> { UnsafePointer(entries) }

    func clear() {
        count = 0
        digitsUsed = 0
    }

    func add(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>, indexed: Bool = true) {
        if count == room { grow() }
        let flag = indexed ? NGHTTP2_NV_FLAG_NONE : NGHTTP2_NV_FLAG_NO_INDEX
        (entries + count).initialize(
            to: nghttp2_nv(
                name: UnsafeMutablePointer(mutating: name.baseAddress),
                value: UnsafeMutablePointer(mutating: value.baseAddress), namelen: name.count, valuelen: value.count,
                flags: UInt8(flag.rawValue)))
        count += 1
    }

    func add(_ name: StaticString, _ value: UnsafeBufferPointer<UInt8>) {
        add(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount), value)
    }

    /// Adds a field with a number, which must not be negative. At most three numbers fit in one
    /// list.
    func add(_ name: StaticString, number: Int) {
        precondition(number >= 0 && digitsUsed <= 40, "no number for a field")
        var rest = number
        var at = digitsUsed + 20
        repeat {
            at -= 1
            digits[at] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        } while rest > 0
        digitsUsed += 20
        add(name, UnsafeBufferPointer(start: digits + at, count: digitsUsed - at))
    }

    private func grow() {
        let wider = UnsafeMutablePointer<nghttp2_nv>.allocate(capacity: room * 2)
        wider.moveInitialize(from: entries, count: count)
        entries.deallocate()
        entries = wider
        room *= 2
    }
}
