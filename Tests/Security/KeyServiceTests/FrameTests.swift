import Bytes
import Crypto
import Domain
import Relay
import Testing

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

    @Test(arguments: [[0, 1, 0, 1], [0xff, 0xff, 0xff, 0xff], [0x80, 0, 0, 0]] as [[UInt8]])
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
    }

    @Test(
        arguments: [
            "", "not json", "[]", "{}", "null", #"{"verb":1}"#, #"{"verb":"sign"}"#, #"{"verb":"UNWRAP"}"#,
            #"{"verb":"unwrap","device":"0"}"#, #"{"verb":"issue"}"#, #"{"verb":"issue","device":"0","key":""}"#,
            #"{"verb":"issue","device":"00000000000000000000000000000000","key":"AAAA"}"#,
            #"{"verb":"issue","device":"00000000000000000000000000000000","key":7}"#,
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
