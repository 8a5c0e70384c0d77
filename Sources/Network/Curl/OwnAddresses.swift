import CLinux
import Glibc

/// The current addresses of this machine, each of 4 or 16 bytes.
enum OwnAddresses {
    static func contains(_ address: [UInt8]) -> Bool {
        var first: UnsafeMutablePointer<ifaddrs>?
        // Without the list every address counts as our own: a lack of memory must not allow a
        // connection.
        guard getifaddrs(&first) == 0 else { return true }
        defer { freeifaddrs(first) }
        var next = first
        while let entry = next {
            if bytes(of: entry.pointee.ifa_addr) == address { return true }
            next = entry.pointee.ifa_next
        }
        return false
    }

    private static func bytes(of address: UnsafeMutablePointer<sockaddr>?) -> [UInt8]? {
        guard let address else { return nil }
        let raw = UnsafeRawPointer(address)
        switch Int32(address.pointee.sa_family) {
        case AF_INET:
            return withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in.self).sin_addr) { Array($0) }
        case AF_INET6:
            return withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr) { Array($0) }
        default: return nil
        }
    }
}
