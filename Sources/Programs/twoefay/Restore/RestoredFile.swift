import Crypto
import Daemon
import Glibc

/// The copy that is put back.
struct RestoredFile {
    /// The first bytes of a SQLite database.
    private static let mark = Array("SQLite format 3\u{0}".utf8)

    let path: String
    let isSQLite: Bool
    /// SHA-256 of the file, by which a later run knows an interrupted one.
    let hash: [UInt8]

    init(_ path: String, _ progress: ProgressLines) throws(Failure) {
        self.path = Files.resolve(path, in: Self.workingDirectory)
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            throw Failure(
                errno == ENOENT ? .notFound : .failed, "\(path): \(String(cString: strerror(errno)))",
                next: "Nothing was changed. Give the name of a file that 'twoefay backup' has written.")
        }
        defer { close(file) }
        var (chunk, start): ([UInt8], [UInt8]) = ([UInt8](repeating: 0, count: 1 << 20), [])
        do throws(CryptoFailure) {
            let sum = try RunningSHA256()
            let size = BackupFile.size(path)
            var done: Int64 = 0
            while true {
                let count = read(file, &chunk, chunk.count)
                if count < 0, errno == EINTR { continue }
                guard count >= 0 else { break }
                if start.count < Self.mark.count { start += chunk.prefix(min(count, Self.mark.count)) }
                if count == 0 { break }
                done += Int64(count)
                progress.show(done, of: size, percent: "of the copy read")
                chunk.withUnsafeBytes { sum.update(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            }
            hash = sum.finish()
        } catch {
            throw Failure(
                .failed, "\(path): \(error)",
                next: "Nothing was changed. Look at the disk that has the copy, or put another copy back.")
        }
        isSQLite = start.starts(with: Self.mark)
    }

    private static var workingDirectory: String {
        var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
        guard getcwd(&bytes, bytes.count) != nil else { return "." }
        return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
