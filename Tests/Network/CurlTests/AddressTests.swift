import EventLoop
import Testing

@testable import Curl

@Suite struct AddressGuardTests {
    @Test(
        "private, reserved and multicast addresses",
        arguments: [
            "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254",
            "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1",
            "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
            "255.255.255.255",
            "::", "::1", "::127.0.0.1", "::8.8.8.8", "100::1", "2001::1", "2001:0:102:304::1", "2001:2::1",
            "2001:db8::1", "3fff::1", "fc00::1", "fd12::1", "fe80::1", "fec0::1", "ff02::1", "5f00::1", "4000::1",
            // The IPv4 address inside the IPv6 address decides.
            "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::1",
            "2002:c0a8:101::1", "64:ff9b:1::8.8.8.8",
        ])
    func privateAddressesAreRefused(_ address: String) {
        #expect(AddressGuard().refusal(of: address) != nil)
        #expect(AddressGuard.none.refusal(of: address) == nil)
    }

    @Test(
        "public addresses, and names before they are resolved",
        arguments: [
            "8.8.8.8", "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
            "128.0.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255", "223.255.255.255", "2606:4700::1111",
            "2a00:1450:4001::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1",
            // Only the addresses of a name are checked.
            "localhost", "push.example.com",
        ])
    func publicAddressesAreAllowed(_ host: String) { #expect(AddressGuard().refusal(of: host) == nil) }

    @Test func configuredRangesAreAllowed() throws {
        let allowed = AddressGuard(allowing: try ["10.1.0.0/16", "fd00:1::/32", "127.0.0.1"].map { try range($0) })
        for address in ["10.1.2.3", "::ffff:10.1.255.255", "fd00:1::9", "127.0.0.1"] {
            #expect(allowed.refusal(of: address) == nil, "\(address)")
        }
        for address in ["10.2.0.0", "fd00:2::1", "127.0.0.2", "::1"] {
            #expect(allowed.refusal(of: address) != nil, "\(address)")
        }
    }

    @Test(
        "the machine's own addresses in each form",
        arguments: ["8.8.8.8", "::ffff:8.8.8.8", "64:ff9b::808:808", "2606:4700::1"])
    func ownAddressesAreRefused(_ address: String) throws {
        let own: [[UInt8]] = [[8, 8, 8, 8], [0x26, 0x06, 0x47] + Array(repeating: 0, count: 12) + [1]]
        #expect(AddressGuard(own: own).refusal(of: address) == "this machine's own")
        #expect(AddressGuard(own: []).refusal(of: address) == nil)
        let all = try ["0.0.0.0/0", "::/0"].map { try range($0) }
        #expect(AddressGuard(allowing: all, own: own).refusal(of: address) == nil)
    }

    @Test func ownAddressesAreListed() {
        #expect(OwnAddresses.contains([127, 0, 0, 1]))
        #expect(!OwnAddresses.contains([127, 0, 0, 99]) && !OwnAddresses.contains([]))
    }

    private func range(_ text: String) throws -> AddressRange { try #require(AddressRange(text)) }
}

@Suite struct TransferURLTests {
    @Test(
        "URLs and their normalized form",
        arguments: [
            ("https://Push.Example.com/wp/a-b_c?d=1", "https://push.example.com", "/wp/a-b_c?d=1"),
            ("https://push.example.com", "https://push.example.com", "/"),
            ("https://push.example.com:443/x", "https://push.example.com", "/x"),
            ("https://push.example.com:8443?q", "https://push.example.com:8443", "/?q"),
            ("http://192.0.2.1:80/x", "http://192.0.2.1", "/x"),
            ("https://[2001:DB8::1]:444/x", "https://[2001:db8::1]:444", "/x"),
        ])
    func validURLIsParsed(_ text: String, origin: String, path: String) throws {
        let url = try #require(TransferURL(text))
        #expect(url.origin == origin)
        #expect(url.path == path)
        #expect(url.text == origin + path)
    }

    @Test(
        "URLs that parsers interpret differently",
        arguments: [
            "", "https://", "https:///x", "ftp://example.com/", "HTTPS://example.com/", "//example.com/", "example.com",
            "https://user@example.com/", "https://user:word@example.com/", "https://example.com#x",
            "https://example.com\\@10.0.0.1/", "https://example.com:0/", "https://example.com:65536/",
            "https://example.com:/", "https://exa mple.com/", "https://example.com/\n", "https://example.com/\u{e9}",
            "https://ex%61mple.com/", "https://[::1/", "https://[fe80::1%25eth0]/", "https://127.1/",
            "https://2130706433/", "https://0x7f000001/", "https://0x7f.1/", "https://127.0.0.01/",
            "https://example..com/", "https://./", "https://127.0.0.1./",
        ])
    func malformedURLIsRefused(_ text: String) { #expect(TransferURL(text) == nil) }
}
