import CLinux
import Glibc
import Synchronization

/// Pages for secrets that live as long as the process. They are kept out of swap (`mlock`), core
/// dumps (`MADV_DONTDUMP`) and child processes (`MADV_WIPEONFORK`). A secret is wiped when it is
/// released.
///
/// A region consists of a few pages between two guard pages, divided into slots of 32 bytes. A
/// region is added when no slot is free. Regions are never returned, because the keys of a process
/// need only one or two. If `RLIMIT_MEMLOCK` does not allow a region to be locked, it is used
/// nevertheless; `usage` reports these bytes, and the daemon logs them. Tests: `LockedMemoryTests`.
public final class LockedMemory: Sendable {
    /// The bytes of address space that secrets may use.
    public struct Usage: Sendable, Equatable {
        public var locked = 0
        /// Bytes in regions that the system refused to lock.
        public var unlocked = 0

        public init(locked: Int = 0, unlocked: Int = 0) {
            self.locked = locked
            self.unlocked = unlocked
        }
    }

    /// A region. Addresses are stored as integers, so that threads can share them.
    private struct Region {
        let start: UInt
        let size: Int
        let isLocked: Bool
        var isTaken: [Bool]

        /// The first of `count` consecutive free slots; nil if there are none.
        func room(for count: Int) -> Int? {
            var free = 0
            for slot in isTaken.indices {
                free = isTaken[slot] ? 0 : free + 1
                if free == count { return slot - count + 1 }
            }
            return nil
        }
    }

    /// The pages of this process.
    public static let shared = LockedMemory()

    static let slotSize = 32
    static let regionSize = 16 << 10

    private let regions = Mutex<[Region]>([])
    private let lock: @Sendable (UnsafeMutableRawPointer, Int) -> Bool

    /// Makes an empty set of regions.
    /// - Parameter lock: locks pages in memory; a test passes a function that refuses.
    init(lock: @escaping @Sendable (UnsafeMutableRawPointer, Int) -> Bool = { mlock($0, $1) == 0 }) {
        self.lock = lock
    }

    public var usage: Usage {
        regions.withLock { regions in
            regions.reduce(into: Usage()) { usage, region in
                if region.isLocked { usage.locked += region.size } else { usage.unlocked += region.size }
            }
        }
    }

    /// Allocates at least `count` bytes, all zero, and returns their address.
    func allocate(_ count: Int) -> UInt {
        let slots = max(1, (count + Self.slotSize - 1) / Self.slotSize)
        return regions.withLock { regions in
            for index in regions.indices {
                if let slot = regions[index].room(for: slots) { return Self.take(slot, slots, of: &regions[index]) }
            }
            regions.append(map(atLeast: slots * Self.slotSize))
            return Self.take(0, slots, of: &regions[regions.count - 1])
        }
    }

    /// Wipes the bytes and frees their slots.
    func release(_ address: UInt, _ count: Int) {
        let slots = max(1, (count + Self.slotSize - 1) / Self.slotSize)
        regions.withLock { regions in
            guard
                let index = regions.firstIndex(where: { $0.start <= address && address < $0.start + UInt($0.size) }),
                let pointer = UnsafeMutableRawPointer(bitPattern: address)
            else { return }
            explicit_bzero(pointer, slots * Self.slotSize)
            let first = Int(address - regions[index].start) / Self.slotSize
            for slot in first..<first + slots { regions[index].isTaken[slot] = false }
        }
    }

    private static func take(_ slot: Int, _ count: Int, of region: inout Region) -> UInt {
        for taken in slot..<slot + count { region.isTaken[taken] = true }
        return region.start + UInt(slot * slotSize)
    }

    /// Ends the process, as Swift does if an allocation fails. Mapping and unprotecting private
    /// pages fail only if the system has no memory left. No request can cause it: only keys that live
    /// as long as the process are kept here.
    private static func endForWantOfMemory() -> Never { fatalError("no locked memory for keys: errno \(errno)") }

    private func map(atLeast count: Int) -> Region {
        let page = sysconf(Int32(_SC_PAGESIZE))
        let size = (max(count, Self.regionSize) + page - 1) / page * page
        let all = mmap(nil, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let all, all != MAP_FAILED else { Self.endForWantOfMemory() }
        let start = all + page
        guard mprotect(start, size, PROT_READ | PROT_WRITE) == 0 else { Self.endForWantOfMemory() }
        // Kernels older than these flags refuse them. Then the pages are like ordinary ones.
        madvise(start, size, MADV_DONTDUMP)
        madvise(start, size, MADV_WIPEONFORK)
        return Region(
            start: UInt(bitPattern: start), size: size, isLocked: lock(start, size),
            isTaken: Array(repeating: false, count: size / Self.slotSize))
    }
}
