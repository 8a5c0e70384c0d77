import Bytes
import Crypto
import Domain
import Relay
import Testing
import World

@testable import KeyService

/// The encoding of frames, without a socket.
@Suite struct FrameTests {
    @Test func fragmentedFrameIsRead() throws {
        let message = Array("a message".utf8)
        var buffer = KeyFrameBuffer()
        for byte in KeyFrame.encode(message) {
            #expect(try buffer.message() == nil)
            buffer.append([byte])
        }
        #expect(try buffer.message() == message)
    }

    @Test func emptyAndLongestMessagesAreRead() throws {
        for count in [0, KeyFrame.limit] {
            var buffer = KeyFrameBuffer()
            buffer.append(KeyFrame.encode([UInt8](repeating: 7, count: count)))
            #expect(try buffer.message()?.count == count)
        }
    }

    @Test(arguments: [[0, 0x40, 0, 1], [0xff, 0xff, 0xff, 0xff], [0x80, 0, 0, 0]] as [[UInt8]])
    func lengthBeyondTheLimitIsRefusedAtOnce(_ header: [UInt8]) {
        var buffer = KeyFrameBuffer()
        buffer.append(header)
        #expect(throws: KeyServiceFailure.self) { try buffer.message() }
    }

    @Test func trailingBytesAreRefused() {
        var buffer = KeyFrameBuffer()
        buffer.append(KeyFrame.encode([1, 2]) + [3])
        #expect(throws: KeyServiceFailure.self) { try buffer.message() }
    }

    @Test func requestRoundTrips() throws {
        #expect(try KeyRequest(message: KeyRequest.unwrap.message) == .unwrap)
        let device = try #require(ServedKeys.device())
        let issue = KeyRequest.issue(device: device, key: try P256PrivateKey.generate().publicKey)
        #expect(try KeyRequest(message: issue.message) == issue)
        for tag in ["sign", "legacy:raw"] {
            let key = try P256PrivateKey.generate().publicKey
            let tagged = KeyRequest.issueTagged(device: device, tag: try #require(CertificateTag(tag[...])), key: key)
            #expect(try KeyRequest(message: tagged.message) == tagged)
        }
        let website = KeyRequest.issueWebsite(name: "shop", key: try P256PrivateKey.generate().publicKey)
        #expect(try KeyRequest(message: website.message) == website)
        let revoked = (0..<3).map { number in
            RevokedCertificate(
                serial: String(repeating: "0\(number)", count: 20), at: Timestamp(seconds: Int64(number)),
                isOnHold: number == 1)
        }
        for list in [[], Array(revoked.prefix(1)), revoked] {
            let request = KeyRequest.revocationList(list)
            #expect(try KeyRequest(message: request.message) == request)
        }
    }

    @Test func longestRevocationListFitsIntoAFrame() throws {
        let entry = RevokedCertificate(
            serial: String(repeating: "ff", count: 20), at: Timestamp(seconds: 253_402_300_799), isOnHold: true)
        let most = [RevokedCertificate](repeating: entry, count: RevocationList.mostEntries)
        let request = KeyRequest.revocationList(most)
        // The encoder stops at a message that is too long.
        _ = KeyFrame.encode(request.message)
        #expect(try KeyRequest(message: request.message) == request)
        let more = KeyRequest.revocationList(most + [entry])
        #expect(throws: KeyServiceFailure.self) { try KeyRequest(message: more.message) }
    }

    @Test(
        arguments: [
            "", "not json", "[]", "{}", "null", #"{"verb":1}"#, #"{"verb":"sign"}"#, #"{"verb":"UNWRAP"}"#,
            #"{"verb":"unwrap","device":"0"}"#, #"{"verb":"issue"}"#, #"{"verb":"issue","device":"0","key":""}"#,
            #"{"verb":"issue","device":"00000000000000000000000000000000","key":"AAAA"}"#,
            #"{"verb":"issue","device":"00000000000000000000000000000000","key":7}"#,
            #"{"verb":"issue-tagged","device":"00000000000000000000000000000000","key":"AAAA","tag":"sign"}"#,
            #"{"verb":"issue-website","website":"shop","key":"AAAA"}"#,
            #"{"verb":"issue-website","website":"shop/../bank","key":"AAAA"}"#,
            #"{"verb":"crl"}"#, #"{"verb":"crl","revoked":["01:1"]}"#, #"{"verb":"crl","revoked":"01"}"#,
            #"{"verb":"crl","revoked":"01:1,"}"#, #"{"verb":"crl","revoked":",01:1"}"#,
            #"{"verb":"crl","revoked":"01:1:1"}"#, #"{"verb":"crl","revoked":":1"}"#,
            #"{"verb":"crl","revoked":"01:"}"#, #"{"verb":"crl","revoked":"01:h"}"#,
            #"{"verb":"crl","revoked":"01:-1"}"#, #"{"verb":"crl","revoked":"01:253402300800"}"#,
            #"{"verb":"crl","revoked":"0:1"}"#, #"{"verb":"crl","revoked":"0g:1"}"#,
            #"{"verb":"crl","revoked":"000102030405060708090a0b0c0d0e0f1011121314:1"}"#,
            #"{"verb":"crl","revoked":"","digest":"AA"}"#,
            #"{"verb":"unwrap","verb":"unwrap"}"#, #"{"verb":{"verb":{"verb":{}}}}"#,
        ])
    func malformedRequestIsRefused(_ text: String) {
        #expect(throws: KeyServiceFailure.self) { try KeyRequest(message: Array(text.utf8)) }
    }

    @Test func keyOutsideTheCurveIsRefused() throws {
        var key = try P256PrivateKey.generate().publicKey.x963
        key[40] ^= 1
        let text =
            #"{"verb":"issue","device":"00000000000000000000000000000000","key":"\#(Base64URL.encode(key))"}"#
        #expect(throws: KeyServiceFailure.self) { try KeyRequest(message: Array(text.utf8)) }
    }

    @Test func keysRoundTrip() throws {
        let keys = ServedKeys.someKeys()
        var bytes: [UInt8] = []
        keys.appendBytes(to: &bytes)
        let read = try DataKeys(list: keys.list, bytes: Secret(bytes))
        #expect(read.sealing.map(\.id) == ["new", "old"])
        #expect(read.sealing.map(\.isNext) == [true, false])
        #expect(read.sealing.map { $0.key.reveal() } == keys.sealing.map { $0.key.reveal() })
        #expect(read.signing.map { $0.reveal() } == keys.signing.map { $0.reveal() })
        #expect(read.relay.operations.reveal() == keys.relay.operations.reveal())
        #expect(read.relay.proofs.reveal() == keys.relay.proofs.reveal())
        #expect(throws: KeyServiceFailure.self) { try DataKeys(list: keys.list, bytes: Secret(bytes.dropLast())) }
    }
}

extension Secret {
    fileprivate init(_ slice: ArraySlice<UInt8>) { self.init(Array(slice)) }
}
