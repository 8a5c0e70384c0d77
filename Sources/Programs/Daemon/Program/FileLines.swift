import Glibc

extension Files {
    /// Calls `body` with each line of a file that may be large, without its end. A line that is longer
    /// than `limit` is given as an empty one.
    public static func eachLine(
        _ path: String, atMost limit: Int = 64 << 10, _ body: (_ number: Int, _ line: ArraySlice<UInt8>) -> Void
    ) throws(Problem) {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw Problem(path) }
        defer { close(file) }
        var chunk = [UInt8](repeating: 0, count: 256 << 10)
        var (number, rest, isTooLong) = (0, [UInt8](), false)
        func end(_ tail: ArraySlice<UInt8>) {
            number += 1
            let fits = !isTooLong && rest.count + tail.count <= limit
            body(number, !fits ? [] : rest.isEmpty ? tail : (rest + tail)[...])
            (rest, isTooLong) = ([], false)
        }
        while true {
            let count = Glibc.read(file, &chunk, chunk.count)
            if count == 0 { break }
            guard count > 0 else {
                if errno == EINTR { continue }
                throw Problem(path)
            }
            var start = 0
            while let next = chunk[start..<count].firstIndex(of: UInt8(ascii: "\n")) {
                end(chunk[start..<next])
                start = next + 1
            }
            if rest.count + count - start > limit { (rest, isTooLong) = ([], true) }
            if !isTooLong { rest += chunk[start..<count] }
        }
        if !rest.isEmpty || isTooLong { end([]) }
    }
}
