import CMariaDB

/// The values of one execution, or of several that become one: array binding.
///
/// It decides which rows of values can share an execution. All values of a parameter must be of one
/// kind, or NULL.
struct MariaDBArray {
    /// The kinds of values, as the server gets them.
    enum Kind {
        case integer, text, blob
    }

    private let slots: [Int]
    /// The kind of each parameter; nil while all its values are NULL.
    private(set) var kinds: [Kind?]
    private(set) var count = 0
    /// The size of the packet, roughly.
    private(set) var bytes = 32

    init(_ slots: [Int]) {
        self.slots = slots
        kinds = Array(repeating: nil, count: slots.count)
    }

    /// Adds a row of values. Returns false if it needs another execution.
    mutating func append(_ values: [SQLValue]) -> Bool {
        var (kinds, bytes) = (kinds, bytes)
        for (index, slot) in slots.enumerated() {
            bytes += 16
            let kind: Kind
            switch values[slot] {
            case .null, .personal: continue
            case .integer: kind = .integer
            case .text(let text): (kind, bytes) = (.text, bytes + text.utf8.count)
            case .blob(let blob): (kind, bytes) = (.blob, bytes + blob.count)
            }
            if let known = kinds[index], known != kind { return false }
            kinds[index] = kind
        }
        (self.kinds, self.bytes) = (kinds, bytes)
        count += 1
        return true
    }
}

/// The memory of rows of values in the layout of libmariadb: for each parameter an array with one
/// element for each row.
///
/// Guard: the addresses that `bind` returns are valid while the buffer exists.
final class MariaDBArrayBuffer {
    private let rows: Int
    private let kinds: [MariaDBArray.Kind?]
    // The element of a parameter and a row has the index parameter * rows + row.
    private let integers: UnsafeMutableBufferPointer<Int64>
    private let addresses: UnsafeMutableBufferPointer<UnsafeMutableRawPointer?>
    private let lengths: UnsafeMutableBufferPointer<UInt>
    private let indicators: UnsafeMutableBufferPointer<CChar>
    private let bytes: UnsafeMutableBufferPointer<UInt8>

    /// - Parameter all: rows that `MariaDBArray` has accepted.
    init(_ all: [[SQLValue]], _ slots: [Int]) {
        rows = all.count
        var array = MariaDBArray(slots)
        for values in all { _ = array.append(values) }
        kinds = array.kinds
        let elements = all.count * slots.count
        integers = .allocate(capacity: elements)
        addresses = .allocate(capacity: elements)
        lengths = .allocate(capacity: elements)
        indicators = .allocate(capacity: elements)
        // A value without bytes needs an address, too.
        bytes = .allocate(capacity: array.bytes + 1)
        integers.initialize(repeating: 0)
        addresses.initialize(repeating: UnsafeMutableRawPointer(bytes.baseAddress))
        lengths.initialize(repeating: 0)
        indicators.initialize(repeating: CChar(STMT_INDICATOR_NONE.rawValue))
        var used = 0
        for (row, values) in all.enumerated() {
            for (parameter, slot) in slots.enumerated() {
                fill(parameter * all.count + row, with: values[slot], &used)
            }
        }
    }

    deinit {
        integers.deallocate()
        addresses.deallocate()
        lengths.deallocate()
        indicators.deallocate()
        bytes.deallocate()
    }

    private func fill(_ element: Int, with value: SQLValue, _ used: inout Int) {
        switch value {
        case .null, .personal: indicators[element] = CChar(STMT_INDICATOR_NULL.rawValue)
        case .integer(let number): integers[element] = number
        case .text(let text): append(text.utf8, to: element, &used)
        case .blob(let blob): append(blob, to: element, &used)
        }
    }

    private func append(_ value: some Collection<UInt8>, to element: Int, _ used: inout Int) {
        let place = UnsafeMutableBufferPointer(rebasing: bytes[used..<(used + value.count)])
        _ = place.initialize(fromContentsOf: value)
        addresses[element] = UnsafeMutableRawPointer(bytes.baseAddress.map { $0 + used })
        lengths[element] = UInt(value.count)
        used += value.count
    }

    /// The arrays of a parameter.
    func bind(_ parameter: Int) -> MYSQL_BIND {
        let first = parameter * rows
        var bind = MYSQL_BIND()
        bind.u.indicator = indicators.baseAddress.map { $0 + first }
        switch kinds[parameter] {
        case .integer:
            bind.buffer_type = MYSQL_TYPE_LONGLONG
            bind.buffer = UnsafeMutableRawPointer(integers.baseAddress.map { $0 + first })
            return bind
        case .text, nil: bind.buffer_type = MYSQL_TYPE_STRING
        case .blob: bind.buffer_type = MYSQL_TYPE_BLOB
        }
        bind.buffer = UnsafeMutableRawPointer(addresses.baseAddress.map { $0 + first })
        bind.length = lengths.baseAddress.map { $0 + first }
        return bind
    }
}
