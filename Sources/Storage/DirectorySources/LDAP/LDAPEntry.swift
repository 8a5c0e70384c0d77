import CLDAP
import Glibc

/// An entry that a search returned.
struct LDAPEntry {
    let dn: String
    /// The values by the names of their attributes, in lower case.
    let values: [String: [[UInt8]]]
    /// The attributes with a value that is longer than allowed. None of their values is kept.
    let tooLong: [String]

    init(_ message: OpaquePointer, of handle: OpaquePointer, _ limits: LDAPLimits) throws(LDAPFailure) {
        guard let name = ldap_get_dn(handle, message) else { throw Self.malformed }
        dn = String(cString: name)
        ldap_memfree(name)
        var (values, tooLong): ([String: [[UInt8]]], [String]) = ([:], [])
        Self.clearStatus(of: handle)
        var cursor: OpaquePointer?
        var attribute = ldap_first_attribute(handle, message, &cursor)
        defer { ber_free(cursor, 0) }
        while let found = attribute {
            let name = String(cString: found).lowercased()
            ldap_memfree(found)
            let read = try Self.values(of: handle, message, name)
            if read.contains(where: { $0.count > limits.value }) || read.count > limits.values {
                tooLong.append(name)
            } else {
                values[name] = read
            }
            attribute = ldap_next_attribute(handle, message, cursor)
        }
        guard Self.isAtEnd(cursor, of: handle) else { throw Self.malformed }
        self.values = values
        self.tooLong = tooLong
    }

    private static let malformed = LDAPFailure(.malformed, "an entry of the directory cannot be read")

    private static func clearStatus(of handle: OpaquePointer) {
        var status = LDAP_SUCCESS
        ldap_set_option(handle, LDAP_OPT_RESULT_CODE, &status)
    }

    /// Whether all attributes were read. libldap ends with the same error behind the last one and
    /// at one that it cannot read. Without a cursor, there was no first one, or it cannot be read.
    private static func isAtEnd(_ cursor: OpaquePointer?, of handle: OpaquePointer) -> Bool {
        guard let cursor else { return !isUnreadable(handle) }
        var rest: ber_len_t = 0
        return ber_get_option(UnsafeMutableRawPointer(cursor), LBER_OPT_BER_REMAINING_BYTES, &rest) == LBER_OPT_SUCCESS
            && rest == 0
    }

    private static func isUnreadable(_ handle: OpaquePointer) -> Bool {
        var status = LDAP_SUCCESS
        return ldap_get_option(handle, LDAP_OPT_RESULT_CODE, &status) != LDAP_SUCCESS || status == LDAP_DECODING_ERROR
    }

    private static func values(
        of handle: OpaquePointer, _ message: OpaquePointer, _ name: String
    ) throws(LDAPFailure) -> [[UInt8]] {
        guard let list = ldap_get_values_len(handle, message, name) else {
            guard !isUnreadable(handle) else { throw malformed }
            return []
        }
        defer { ldap_value_free_len(list) }
        var (values, at): ([[UInt8]], Int) = ([], 0)
        while let value = list[at] {
            let bytes = UnsafeRawBufferPointer(start: value.pointee.bv_val, count: Int(value.pointee.bv_len))
            values.append(Array(bytes))
            at += 1
        }
        return values
    }
}

/// The position in a paged search (RFC 2696). A server without pages returns all entries in one.
struct LDAPPage {
    /// The entries so far.
    var count = 0
    /// Whether another page follows.
    private(set) var isMore = false
    private var cookie: [UInt8] = []
    private var emptyPages = 0
    private var countBefore = 0

    /// The most pages without an entry. A server may return some, but not for ever.
    private static let mostEmpty = 1000

    /// Makes the control that requests the next page.
    func control(_ handle: OpaquePointer, size: Int) throws(LDAPFailure) -> UnsafeMutablePointer<LDAPControl> {
        var cookie = cookie
        var made: UnsafeMutablePointer<LDAPControl>?
        let status = cookie.withUnsafeMutableBytes { bytes in
            var value = berval(
                bv_len: ber_len_t(bytes.count), bv_val: bytes.baseAddress?.assumingMemoryBound(to: CChar.self))
            return ldap_create_page_control(handle, ber_int_t(size), &value, 0, &made)
        }
        guard status == LDAP_SUCCESS, let made else {
            throw LDAPFailure(.refused, "the next page cannot be requested")
        }
        return made
    }

    /// Reads the cookie of the next page; without one, the search is complete.
    mutating func end(
        _ handle: OpaquePointer, _ controls: UnsafeMutablePointer<UnsafeMutablePointer<LDAPControl>?>?
    ) throws(LDAPFailure) {
        isMore = false
        guard let control = ldap_control_find("1.2.840.113556.1.4.319", controls, nil) else {
            // A server that sent one page as such must not forget to say whether it was the last.
            guard cookie.isEmpty else { throw LDAPFailure(.malformed, "a page has no position") }
            return
        }
        var (estimate, next) = (ber_int_t(0), berval())
        guard ldap_parse_pageresponse_control(handle, control, &estimate, &next) == LDAP_SUCCESS else {
            throw LDAPFailure(.malformed, "the position of a page cannot be read")
        }
        cookie = Array(UnsafeRawBufferPointer(start: next.bv_val, count: Int(next.bv_len)))
        ldap_memfree(next.bv_val)
        isMore = !cookie.isEmpty
        emptyPages = count == countBefore ? emptyPages + 1 : 0
        countBefore = count
        guard emptyPages < Self.mostEmpty else {
            throw LDAPFailure(.malformed, "the server returns pages without entries")
        }
    }
}
