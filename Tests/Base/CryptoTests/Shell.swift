import Glibc
import Testing

/// A temporary directory in which a test runs `openssl` or another program. It is removed with all
/// its files.
final class Shell {
    let path: String
    private var files: Set<String> = []

    init() throws {
        var template = Array("/tmp/twoefay-crypto-XXXXXX".utf8CString)
        path = String(cString: try #require(mkdtemp(&template)))
    }

    deinit {
        for file in files { unlink("\(path)/\(file)") }
        rmdir(path)
    }

    func write(_ name: String, _ bytes: [UInt8]) throws {
        files.insert(name)
        let file = try #require(fopen("\(path)/\(name)", "w"))
        defer { fclose(file) }
        #expect(fwrite(bytes, 1, bytes.count, file) == bytes.count)
    }

    func read(_ name: String) throws -> [UInt8] {
        let file = try #require(fopen("\(path)/\(name)", "r"))
        defer { fclose(file) }
        return contents(of: file)
    }

    /// - Parameter making: the files that the command creates. They are removed with the directory.
    @discardableResult
    func openssl(_ arguments: String, making: String...) throws -> (status: Int32, output: String) {
        files.formUnion(making)
        return try run("openssl \(arguments)")
    }

    func run(_ command: String) throws -> (status: Int32, output: String) {
        let pipe = try #require(popen("cd \(path) && \(command) 2>&1 </dev/null", "r"))
        let output = contents(of: pipe)
        let status = pclose(pipe)
        return ((status >> 8) & 0xff, String(decoding: output, as: UTF8.self))
    }

    private func contents(of file: UnsafeMutablePointer<FILE>) -> [UInt8] {
        var all: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while case let count = fread(&chunk, 1, chunk.count, file), count > 0 { all += chunk[..<count] }
        return all
    }
}
