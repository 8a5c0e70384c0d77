import Bytes
import Crypto
import Glibc
import TestSupport
import Testing
import World

@testable import Daemon

/// The file of master keys: the newest key seals, every key opens, and the oldest key is the source
/// of all derived keys.
@Suite struct MasterKeyTests {
    private let first = String(repeating: "01", count: 32)
    private let second = String(repeating: "02", count: 32)
    private let third = String(repeating: "03", count: 32)

    private func key(_ text: String) throws -> MasterKey { try MasterKey(file: Array(text.utf8)) }

    private func fault(_ text: String) -> String? {
        do throws(MasterKey.Fault) {
            _ = try MasterKey(file: Array(text.utf8))
            return nil
        } catch {
            return error.message
        }
    }

    @Test func newestKeySealsAndOldestKeyDerivesIDs() throws {
        let alone = try key("\(first)\n")
        let both = try key("# two\n\n\(second)\n\(first)  \n")
        let waiting = try key("\(third)\tnext\n\(second)\n\(first)")
        #expect(both.secret.reveal() == alone.secret.reveal() && waiting.secret.reveal() == alone.secret.reveal())
        #expect(both.current.id == waiting.current.id && both.current.id != alone.current.id)
        #expect(waiting.next?.id == (try key(third)).current.id)
        #expect(both.old.map(\.id) == [alone.current.id])

        let (a, b, c) = (try alone.sealer(), try both.sealer(), try waiting.sealer())
        let old = try a.seal([1, 2, 3], associated: [4])
        let new = try b.seal([5], associated: [4])
        #expect(try b.open(old, associated: [4]) == [1, 2, 3] && c.open(new, associated: [4]) == [5])
        #expect(throws: SealFailure.unknownKey(both.current.id)) { try a.open(new, associated: [4]) }
        // The next key already opens, but does not seal yet.
        #expect(try Sealer.keyID(of: c.seal([], associated: [])) == both.current.id)
        let latest = try key(third).sealer().seal([6], associated: [])
        #expect(try c.open(latest, associated: []) == [6])
        #expect(c.oldKeyIDs == [alone.current.id])
        #expect(try !c.isStale(latest) && c.isStale(old) && !c.isStale(new))
    }

    /// Installations that are older than key rotation have this format.
    @Test func singleKeyFileKeepsItsFormat() throws {
        #expect(try key(first).file == Array("\(first)\n".utf8))
        #expect(try key(first).current.madeAt == nil)
    }

    /// The time goes with its key. Other comments, and comments elsewhere, are no times.
    @Test func commentAboveAKeySaysWhenItWasMade() throws {
        let born = try #require(Timestamp(rfc3339: "2026-01-02T00:00:00.000Z"))
        let made = MasterKey.generate(SystemRandomness(), at: born)
        let read = try MasterKey(file: made.file)
        #expect(read.current.id == made.current.id && read.current.madeAt == born && read.file == made.file)
        let later = born + .seconds(3600)
        let both = try MasterKey(file: read.adding(Secret([UInt8](repeating: 2, count: 32)), at: later).file)
        #expect(both.next?.madeAt == later && both.current.madeAt == born)
        let used = try both.usingNext()
        #expect(used.current.madeAt == later && used.old.map(\.madeAt) == [born])
        let finished = String(decoding: try used.dropping(used.old.map(\.id)).file, as: UTF8.self)
        #expect(finished.contains("# made 2026-01-02T01:00:00.000Z\n\(second)\n"))
        #expect(!finished.contains("T00:00:00.000Z"))
        for comment in ["# made", "# made yesterday", "# made 2026-01-02T01:00:00.000Z\n"] {
            let text = "\(comment)\n\(first)\n"
            #expect(try key(text).current.madeAt == nil && key(text).file == Array(text.utf8), "\(comment)")
        }
    }

    @Test func masterKeyRotationStepsAreOrdered() throws {
        let made = try key("# ours\n\(first)\n")
        let waiting = try made.adding(Secret(Array(repeating: 2, count: 32)), at: SystemTime().now())
        #expect(waiting.current.id == made.current.id && waiting.next != nil)
        let used = try waiting.usingNext()
        #expect(used.current.id == waiting.next?.id && used.next == nil && used.old.map(\.id) == [made.current.id])
        let finished = try used.dropping(used.old.map(\.id))
        #expect(finished.keys.map(\.id) == [used.current.id])
        let lines = String(decoding: finished.file, as: UTF8.self).split(separator: "\n")
        #expect(lines.contains("# ours") && lines.last.map(String.init) == second)
        // The explanation in the file is not repeated.
        let again = try finished.adding(Secret([UInt8](repeating: 3, count: 32)), at: SystemTime().now())
        let text = String(decoding: again.file, as: UTF8.self).split(separator: "\n")
        #expect(text.count { $0.contains("the newest first") } == 1)
        #expect(text.filter { !$0.hasPrefix("#") } == ["\(third) next", "\(second)"])
    }

    @Test func malformedMasterKeyIsRefusedWithItsLine() {
        #expect(fault("\(first)\nxyz\n")?.hasPrefix("line 2 ") == true)
        #expect(fault("\(first.dropLast())\n")?.hasPrefix("line 1 ") == true)
        #expect(fault("\(first) now\n")?.hasPrefix("line 1 ") == true)
        #expect(fault("\(first) next next\n")?.hasPrefix("line 1 ") == true)
        #expect(fault("\(first.uppercased().replacing("1", "A"))\n")?.hasPrefix("line 1 ") == true)
        #expect(fault("")?.contains("must hold 64") == true)
        #expect(fault("# nothing\n")?.contains("must hold 64") == true)
        #expect(fault("\(first) next\n")?.contains("must hold 64") == true)
        #expect(fault("\(first)\n\(second) next\n")?.contains("as its last key") == true)
        #expect(fault("\(first)\n\(second) next\n\(third)\n") == "only its first key may be next")
        #expect(fault("\(first)\n\(first)\n") == "holds a key twice")
        for message in [fault("\(first)\n\(second)x\n"), fault("\(first)\n\(first)\n")] {
            #expect(message?.contains("0101") == false && message?.contains("0202") == false)
        }
    }

    @Test func masterKeyFileKeepsItsPermissions() throws {
        let directory = try TemporaryDirectory()
        try Files.create(directory("key"), [1], mode: 0o400)
        try #require(symlink("key", directory("link")) == 0)
        try Files.rewrite(directory("link"), [2, 3])
        #expect(try Files.read(directory("key")) == [2, 3])
        #expect(TemporaryDirectory.mode(of: directory("key")) == 0o400)
        #expect(try Files.names(in: directory.path) == ["key", "link"])
        #expect(throws: Files.Problem.self) { try Files.rewrite(directory("none"), [1]) }
    }
}

extension String {
    fileprivate func replacing(_ old: Character, _ new: Character) -> String { String(map { $0 == old ? new : $0 }) }
}
