import HTTP
import Testing

struct WebAddressNameTests {
    @Test func defaultPortMayBeLeftOut() throws {
        let usual = try #require(WebAddress("https://login.example.com"))
        let other = try #require(WebAddress("https://login.example.com:8080"))
        for text in ["login.example.com", "LOGIN.example.com", "login.example.com:443"] {
            #expect(usual.isNamed(text), "\(text)")
            #expect(!other.isNamed(text), "\(text)")
        }
        #expect(other.isNamed("login.example.com:8080"))
        for text in ["", "example.com", "login.example.com:8443", "login.example.com:", "a@login.example.com"] {
            #expect(!usual.isNamed(text), "\(text)")
        }
        // Others may read it as octal.
        #expect(!usual.isNamed("login.example.com:0443") && WebAddress("https://login.example.com:00") == nil)
        #expect(WebAddress.split("login.example.com:0")?.port == 0)
    }

    @Test func addressIsNamedInBrackets() throws {
        let address = try #require(WebAddress("https://[::1]:8080"))
        #expect(address.isNamed("[::1]:8080"))
        #expect(!address.isNamed("::1:8080"))
    }
}
