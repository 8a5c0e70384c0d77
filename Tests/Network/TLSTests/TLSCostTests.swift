import Bytes
import Crypto
import EventLoop
import Glibc
import TestSupport
import Testing
import World

@testable import TLS

/// The work that an unauthenticated peer can cause: the key exchanges that the server accepts, and
/// the bytes of certificates that it reads. The raw ClientHello offers one group and no key share,
/// so an accepted group causes a HelloRetryRequest, which costs no exponentiation.
struct TLSCostTests {
    private let authorities: TestCertificates

    init() throws { authorities = try TestCertificates() }

    private static let allowed: [(group: UInt16, name: String)] = [
        (0x001d, "X25519"), (0x0017, "P-256"), (0x0018, "P-384"),
    ]
    private static let refused: [(group: UInt16, name: String)] = [
        (0x0019, "P-521"), (0x001e, "X448"), (0x0100, "ffdhe2048"), (0x0101, "ffdhe3072"), (0x0102, "ffdhe4096"),
        (0x0103, "ffdhe6144"), (0x0104, "ffdhe8192"),
    ]
    /// The fatal alert handshake_failure.
    private static let handshakeFailure: [UInt8] = [0x15, 3, 3, 0, 2, 2, 40]

    /// Returns the bytes that the server sends in answer.
    private func answer(to bytes: [UInt8]) throws -> [UInt8] {
        var ends: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
        let session = try TLSSession(server: authorities.serverContext(), fd: ends[0])
        try #require(bytes.withUnsafeBytes { send(ends[1], $0.baseAddress, $0.count, 0) } == bytes.count)
        _ = session.handshake()
        var received = [UInt8](repeating: 0, count: 65_536)
        let count = recv(ends[1], &received, received.count, 0)
        return Array(received.prefix(max(count, 0)))
    }

    @Test func onlyThreeGroupsAreAcceptedInTLS13() throws {
        for (group, name) in Self.allowed {
            let answer = try answer(to: ClientHello(group: group).bytes)
            // A HelloRetryRequest is a ServerHello with a special random value. It ends with the
            // group.
            #expect(answer.first == 0x16, "\(name)")
            #expect(Array(answer.dropFirst(11).prefix(4)) == [0xcf, 0x21, 0xad, 0x74], "\(name)")
        }
        for (group, name) in Self.refused {
            #expect(try answer(to: ClientHello(group: group).bytes) == Self.handshakeFailure, "\(name)")
        }
    }

    /// A sender can replay the bytes of one ClientHello at no cost.
    @Test func replayedClientHelloForFfdhe8192IsRefusedWithoutAnExponentiation() throws {
        let hello = ClientHello(group: 0x0104, share: Array(repeating: 0x5a, count: 1024)).bytes
        for _ in 0..<3 { #expect(try answer(to: hello) == Self.handshakeFailure) }
    }

    /// Each ClientHello also offers P-256, because TLS 1.2 requires the curve of the server's
    /// certificate there.
    @Test func onlyThreeGroupsAreAcceptedInTLS12() throws {
        for (group, name) in Self.allowed + Self.refused {
            let answer = try answer(to: ClientHello(group: group, isTLS12: true).bytes)
            // ServerKeyExchange: its length, then a named curve.
            let start = try #require(
                answer.indices.dropLast(7).first { at in
                    answer[at] == 12 && answer[at + 1] == 0 && answer[at + 4] == 3 && answer[at + 5] == 0
                })
            let chosen = UInt16(answer[start + 5]) << 8 | UInt16(answer[start + 6])
            #expect(Self.allowed.contains { $0.group == chosen }, "\(name)")
        }
    }

    /// A peer without a certificate of the relay's authorities can send only a few kilobytes of
    /// certificates.
    @Test func longCertificateChainIsRefused() throws {
        let leaf = try authorities.client()
        let root = try authorities.websites.certificatePEM()
        func refusal(copies: Int) throws -> TLSFailure? {
            var chain = try leaf.certificatePEM()
            for _ in 0..<copies { chain += root }
            let client = try TLSClientContext(
                roots: .pem(root), certificateChainPEM: chain, privateKeyPEM: leaf.keyPEM())
            return try TLSPair(authorities.serverContext(), client).serverFailure()
        }
        #expect(try refusal(copies: 3) == nil)
        #expect(try refusal(copies: 60)?.reasons.contains("excessive message size") == true)
    }
}

/// A ClientHello that offers one key exchange group, HTTP/2 and ECDSA.
private struct ClientHello {
    let group: UInt16
    /// The public key share, or nil to request a HelloRetryRequest.
    var share: [UInt8]?
    var isTLS12 = false

    private static func two(_ value: Int) -> [UInt8] { [UInt8(value >> 8), UInt8(value & 255)] }

    private static func counted(_ bytes: [UInt8]) -> [UInt8] { two(bytes.count) + bytes }

    private static func fieldOf(_ type: Int, _ bytes: [UInt8]) -> [UInt8] { two(type) + counted(bytes) }

    var bytes: [UInt8] {
        let name = Self.two(Int(group))
        var extensions = Self.fieldOf(10, Self.counted(isTLS12 ? name + [0, 0x17] : name))
        extensions += Self.fieldOf(11, [1, 0])
        extensions += Self.fieldOf(13, Self.counted([4, 3]))
        extensions += Self.fieldOf(16, Self.counted([2] + Array("h2".utf8)))
        if !isTLS12 {
            extensions += Self.fieldOf(43, [2, 3, 4])
            extensions += Self.fieldOf(51, Self.counted(share.map { name + Self.counted($0) } ?? []))
        }
        // TLS_AES_128_GCM_SHA256; for TLS 1.2, ECDHE and DHE with AES-128-GCM.
        let ciphers: [UInt8] = isTLS12 ? [0xc0, 0x2b, 0x00, 0x9e] : [0x13, 0x01]
        let body =
            [3, 3] + Array(repeating: 7, count: 32) + [32] + Array(repeating: 9, count: 32) + Self.counted(ciphers)
            + [1, 0] + Self.counted(extensions)
        return [0x16, 3, 1] + Self.counted([1, 0] + Self.counted(body))
    }
}
