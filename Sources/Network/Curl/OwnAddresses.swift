import CLinux
import Glibc

/// The addresses that this machine has at the moment, each of 4 or 16 bytes.
enum OwnAddresses {
    static func contains(_ address: [UInt8]) -> Bool {
        var first: UnsafeMutablePointer<ifaddrs>?
        // Without the list nobody can tell, and a lack of memory is no reason to let somebody in.
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
