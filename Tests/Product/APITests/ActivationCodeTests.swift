import Glibc
import JSON
import TestSupport
import Testing

/// The number of guesses that a thief would need.
struct ActivationCodeTests {
    /// Measured from codes alone, by the number of characters seen at each position.
    @Test func activationCodeHasAtLeast112Bits() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["further-factors": "website"])
        var codes: [String] = []
        for number in 0..<300 {
            let name = "user-\(number)"
            let registered = await shop.send("POST", "/register", ["username": .string(name)])
            let further = await shop.send("POST", "/user/\(name)/activation")
            for activation in [registered["activation"]?.object ?? [:], further.json] {
                let code = try #require(activation["code"]?.string, "\(registered.text) \(further.text)")
                let uri = try #require(activation["uri"]?.string)
                #expect(uri.contains("&code=\(code)&"), "\(uri)")
                codes.append(code)
            }
        }
        #expect(Set(codes).count == 600)
        let length = try #require(codes.first?.utf8.count)
        try #require(codes.allSatisfy { $0.utf8.count == length })
        let bits = (0..<length).map { place in
            log2(Double(Set(codes.map { Array($0.utf8)[place] }).count))
        }
        #expect(bits.reduce(0, +) >= 112, "\(bits)")
    }
}
