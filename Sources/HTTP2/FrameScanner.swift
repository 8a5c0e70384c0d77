/// Walks over the frames in what a peer sends and sees only their heads. libnghttp2 tells nothing of the frames it
/// ignores, and those cost as well.
struct FrameScanner {
    struct Head: Equatable {
        let type: UInt8
        let flags: UInt8
        let length: Int
    }

    /// The client's connection preface, which is no frame.
    static let preface = 24

    private var skip: Int
    private var held: (UInt8, UInt8, UInt8, UInt8, UInt8) = (0, 0, 0, 0, 0)
    private var heldCount = 0

    init(skipping preface: Int) { skip = preface }

    mutating func scan(_ bytes: UnsafeRawBufferPointer, _ frame: (Head) -> Void) {
        var at = 0
        while at < bytes.count {
            if skip > 0 {
                let step = min(skip, bytes.count - at)
                skip -= step
                at += step
                continue
            }
            if heldCount == 0, bytes.count - at >= 9 {
                let length = Int(bytes[at]) << 16 | Int(bytes[at + 1]) << 8 | Int(bytes[at + 2])
                frame(Head(type: bytes[at + 3], flags: bytes[at + 4], length: length))
                at += 9
                skip = length
                continue
            }
            // A head cut in two by the end of a read: five bytes tell, four more name the stream.
            withUnsafeMutableBytes(of: &held) { if heldCount < 5 { $0[heldCount] = bytes[at] } }
            heldCount += 1
            at += 1
            guard heldCount == 9 else { continue }
            heldCount = 0
            let length = Int(held.0) << 16 | Int(held.1) << 8 | Int(held.2)
            frame(Head(type: held.3, flags: held.4, length: length))
            skip = length
        }
    }
}

extension FrameScanner.Head {
    private static let endStream: UInt8 = 1
    private static let acknowledgement: UInt8 = 1

    /// What this frame costs its sender. HEADERS are free here: a request is worth what it asks for, and how many there
    /// may be is a limit of its own.
    var cost: Int {
        switch type {
        case 0: length < 64 && flags & Self.endStream == 0 ? AbuseBudget.control : 0
        case 1: 0
        case 3: AbuseBudget.reset
        case 4: flags & Self.acknowledgement == 0 ? AbuseBudget.settings : AbuseBudget.control
        default: AbuseBudget.control
        }
    }
}
