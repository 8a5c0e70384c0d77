import Glibc
import Testing

@testable import Daemon

/// A directory of its own, removed with all that is in it.
func withDirectory<Value>(_ body: (String) throws -> Value) throws -> Value {
    var template = Array("/tmp/twoefay-test-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Failure(.failed, "mkdtemp: errno \(errno)", next: "") }
    let path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    defer { removeTree(path) }
    return try body(path)
}

private func removeTree(_ path: String) {
    for name in names(in: path) {
        let entry = "\(path)/\(name)"
        if unlink(entry) != 0 { removeTree(entry) }
    }
    rmdir(path)
}

/// What lies in a directory, in order.
func names(in path: String) -> [String] {
    guard let directory = opendir(path) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) { tuple in
            tuple.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted()
}

func mode(of path: String) -> mode_t {
    var state = stat()
    return stat(path, &state) == 0 ? state.st_mode & 0o7777 : 0
}

@Suite struct FilesOfAnInstallation {
    @Test func areWrittenWithTheirModeAndReadBack() throws {
        try withDirectory { directory in
            let bytes = (0..<200_000).map { UInt8(truncatingIfNeeded: $0) }
            try Files.create("\(directory)/a", bytes, mode: 0o600)
            try Files.create("\(directory)/b", [], mode: 0o644)
            #expect(mode(of: "\(directory)/a") == 0o600)
            #expect(mode(of: "\(directory)/b") == 0o644)
            #expect(try Files.read("\(directory)/a") == bytes)
            #expect(try Files.read("\(directory)/b") == [])
        }
    }

    @Test func areNeverOverwritten() throws {
        try withDirectory { directory in
            try Files.create("\(directory)/a", [1], mode: 0o600)
            let problem = #expect(throws: Files.Problem.self) { try Files.create("\(directory)/a", [2], mode: 0o600) }
            #expect(problem?.exists == true)
            #expect(try Files.read("\(directory)/a") == [1])
        }
    }

    @Test func areRefusedWhenOthersCouldReadASecret() throws {
        try withDirectory { directory in
            try Files.create("\(directory)/open", [1], mode: 0o640)
            let problem = #expect(throws: Files.Problem.self) { try Files.readPrivate("\(directory)/open") }
            #expect(problem?.text.contains("chmod 600") == true)
            try Files.create("\(directory)/shut", [1], mode: 0o600)
            #expect(try Files.readPrivate("\(directory)/shut") == [1])
        }
    }

    @Test func thatAreMissingAreNamed() throws {
        let problem = #expect(throws: Files.Problem.self) { try Files.read("/nowhere/at/all") }
        #expect(problem?.text == "/nowhere/at/all: No such file or directory")
    }

    @Test func lieWhereTheirPathsSay() {
        #expect(Files.resolve("a", in: "/etc/x") == "/etc/x/a")
        #expect(Files.resolve("/a", in: "/etc/x") == "/a")
        #expect(Files.directory(of: "/etc/x/y.yaml") == "/etc/x")
        #expect(Files.directory(of: "/y.yaml") == "/")
        #expect(Files.directory(of: "y.yaml") == ".")
    }
}
