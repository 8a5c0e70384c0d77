import CLinux
import Glibc
import TestSupport
import Testing

@testable import Bytes

/// Locked memory, which holds keys and wipes them.
@Suite struct LockedMemoryTests {
    /// The page stays mapped after the release, so the test can read it.
    @Test func releasedSecretIsWiped() throws {
        let memory = LockedMemory()
        let stays = Secret([7]).locked(in: memory)
        var address: UInt = 0
        do {
            let secret = Secret(Array(repeating: 0xa5, count: 100)).locked(in: memory)
            let copy = secret
            address = secret.withBytes { UInt(bitPattern: $0.baseAddress) }
            #expect(copy.reveal() == Array(repeating: 0xa5, count: 100))
        }
        let page = try #require(UnsafeRawPointer(bitPattern: address))
        #expect(UnsafeRawBufferPointer(start: page, count: 100).allSatisfy { $0 == 0 })
        #expect(stays.reveal() == [7])
        // Free slots are reused.
        let next = Secret([8]).locked(in: memory)
        #expect(next.withBytes { UInt(bitPattern: $0.baseAddress) } == address)
    }

    @Test func arrayIsWipedInPlace() {
        var bytes = Array(repeating: UInt8(0xa5), count: 64)
        let before = bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
        Wiping.wipe(&bytes)
        #expect(bytes.allSatisfy { $0 == 0 } && bytes.count == 64)
        #expect(bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } == before)
    }

    /// The secret uses the array's own storage, so the only copy of the bytes is the one that is
    /// wiped.
    @Test func secretTakesOverItsArrayWithoutACopy() {
        let bytes = Array(repeating: UInt8(0xa5), count: 64)
        let address = bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
        let secret = Secret(bytes)
        #expect(secret.withBytes { UInt(bitPattern: $0.baseAddress) } == address)
        #expect(secret.reveal() == bytes && !secret.isLocked && secret.locked().isLocked)
    }

    /// The kernel's flags: `lo` is locked, `dd` is excluded from dumps, and `wf` is wiped in child
    /// processes.
    @Test func pagesAreLockedAndExcludedFromDumps() throws {
        let memory = LockedMemory()
        let secret = Secret([1, 2, 3]).locked(in: memory)
        let flags = try flags(of: secret.withBytes { UInt(bitPattern: $0.baseAddress) })
        #expect(flags.contains("dd") && flags.contains("wf"), "\(flags)")
        // A sanitizer replaces mlock by a function that does nothing and reports success.
        #expect(flags.contains("lo") == (memory.usage.locked > 0) || Sanitizer.isOn, "\(flags)")
        #expect(memory.usage.locked + memory.usage.unlocked == LockedMemory.regionSize)
    }

    @Test func missingMemlockLimitIsCountedAndTolerated() {
        let memory = LockedMemory { _, _ in false }
        let secret = Secret([1, 2, 3]).locked(in: memory)
        #expect(secret.reveal() == [1, 2, 3])
        #expect(memory.usage == LockedMemory.Usage(unlocked: LockedMemory.regionSize))
    }

    @Test func fullRegionIsFollowedByAnother() {
        let memory = LockedMemory()
        let size = LockedMemory.regionSize
        let secrets = (0..<40).map { Secret(Array(repeating: UInt8($0), count: 1000)).locked(in: memory) }
        let large = Secret(Array(repeating: 9, count: size + 1)).locked(in: memory)
        for (index, secret) in secrets.enumerated() {
            #expect(secret.reveal() == Array(repeating: UInt8(index), count: 1000))
        }
        #expect(large.count == size + 1 && large.reveal().allSatisfy { $0 == 9 })
        #expect(memory.usage.locked + memory.usage.unlocked > 3 * size)
        #expect(Secret([]).locked(in: memory).reveal().isEmpty)
    }

    private func flags(of address: UInt) throws -> [Substring] {
        let file = try #require(fopen("/proc/self/smaps", "r"))
        defer { fclose(file) }
        var line: UnsafeMutablePointer<CChar>?
        var capacity = 0
        defer { free(line) }
        var isHere = false
        while getline(&line, &capacity, file) > 0, let start = line {
            let words = String(cString: start).split { $0 == " " || $0 == "\n" }
            let range = (words.first ?? "").split(separator: "-").compactMap { UInt($0, radix: 16) }
            if range.count == 2 { isHere = range[0] <= address && address < range[1] }
            if isHere, words.first == "VmFlags:" { return Array(words.dropFirst()) }
        }
        return []
    }
}
