import Testing

@testable import DirectorySources

@Suite struct LDAPFilterTests {
    /// RFC 4515 §4 has these examples of escaped values.
    @Test(arguments: [
        ("Parens R Us (for all your parenthetical needs)", "Parens R Us \\28for all your parenthetical needs\\29"),
        ("*", "\\2a"), ("C:\\MyFile", "C\\3a\\5cMyFile"), ("Lučić", "Lu\\c4\\8di\\c4\\87"), ("\u{0}", "\\00"),
        ("cn=a,dc=example", "cn=a,dc=example"), ("", ""),
    ])
    func valueCannotLeaveItsComparison(value: String, escaped: String) {
        #expect(LDAPFilter.escaped(value) == escaped)
    }

    @Test func urlWithMoreThanHostAndPortIsRefused() {
        for url in ["ldaps://dc1.example.com", "ldap://[::1]:389", "ldaps://10.0.0.1:636"] {
            #expect(LDAPServer.fault(of: url, isPlain: true) == nil)
        }
        for url in ["http://x", "ldap://", "ldapi:///", "ldap://x/dc=a??sub?(a=b)", "ldap://x ldap://y", "ldap://u@x"] {
            #expect(LDAPServer.fault(of: url, isPlain: true) != nil, "\(url)")
        }
    }

    @Test(arguments: [
        ("ldap://dc1.example.com", "ldaps://dc1.example.com"), ("ldap://10.0.0.1:389", "ldaps://10.0.0.1"),
        ("ldap://[::1]", "ldaps://[::1]"), ("ldap://[2001:db8::1]:389", "ldaps://[2001:db8::1]"),
    ])
    func urlWithoutTLSIsRefusedWithTheRightOne(url: String, instead: String) {
        #expect(
            LDAPServer.fault(of: url, isPlain: false)
                == "\(url) has no TLS; write \(instead), or insecure: true to read without TLS")
        #expect(LDAPServer.fault(of: instead, isPlain: false) == nil)
    }
}
