import Testing

@testable import EventLoop

@Suite struct AddressRangeTests {
    @Test func malformedRangeIsRefused() throws {
        for text in ["10.0.0.0/8", "0.0.0.0/0", "::/0", "fd00::/8", "192.0.2.128/25", "1.2.3.4/32"] {
            #expect(try range(text).description == text)
        }
        #expect(try range("1.2.3.4").description == "1.2.3.4/32")
        for text in [
            "", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/08", "10.0.0.1/8", "10/8", "::1/64",
            "fd00::/129", "localhost", "10.0.0.0/8/8", " 10.0.0.0/8", "127.0.0.1\0",
        ] { #expect(AddressRange(text) == nil, "\(text)") }
    }

    @Test func rangeContainsOnlyAddressesOfItsFamily() throws {
        let (four, six) = (try range("10.1.0.0/16"), try range("fd00:1::/32"))
        for text in ["10.1.0.0", "10.1.255.255"] {
            let address = try address(text)
            #expect(four.contains(address), "\(text)")
        }
        for text in ["10.0.255.255", "10.2.0.0", "::", "a01::"] {
            let address = try address(text)
            #expect(!four.contains(address), "\(text)")
        }
        let (inside, outside) = (try address("fd00:1::9"), try address("fd00:2::9"))
        #expect(six.contains(inside) && !six.contains(outside))
        let (every, other) = (try range("::/0"), try address("10.1.0.1"))
        #expect(!every.contains(other))
    }

    private func range(_ text: String) throws -> AddressRange { try #require(AddressRange(text)) }
    private func address(_ text: String) throws -> SocketAddress { try #require(SocketAddress(host: text, port: 1)) }
}

@Suite struct SocketAddressTests {
    @Test func socketAddressIsReadFromWireBytes() throws {
        let four = try #require(SocketAddress(bytes: [192, 0, 2, 7], port: 443))
        #expect("\(four)" == "192.0.2.7:443" && four.bytes == [192, 0, 2, 7])
        let bytes: [UInt8] = [0x20, 1, 0x0d, 0xb8] + Array(repeating: 0, count: 11) + [9]
        let six = try #require(SocketAddress(bytes: bytes, port: 1))
        #expect("\(six)" == "[2001:db8::9]:1" && six.bytes == bytes)
        for count in [0, 3, 5, 15, 17] {
            #expect(SocketAddress(bytes: Array(repeating: 1, count: count), port: 1) == nil, "\(count)")
        }
    }

    /// A dual-stack socket reports IPv4 clients as IPv4-mapped IPv6 addresses.
    @Test func mappedIPv4AddressIsUnwrapped() throws {
        for (text, plain) in [
            ("::ffff:192.0.2.7", "192.0.2.7"), ("192.0.2.7", "192.0.2.7"), ("2001:db8::9", "2001:db8::9"),
            ("::192.0.2.7", "::192.0.2.7"), ("::1", "::1"),
        ] {
            let address = try #require(SocketAddress(host: text, port: 5))
            #expect(address.unmapped.host == plain && address.unmapped.port == 5)
        }
    }
}
