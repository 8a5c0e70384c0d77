// A stand-in: declarations as far as TwoefayPhoneApple needs them, so that a change of TwoefayPhone
// cannot break it unnoticed. They were written by hand, and prove nothing about Apple's framework.

public enum LAPolicy { case deviceOwnerAuthentication }

public class LAContext {
    public init() {}

    @discardableResult
    public func evaluatePolicy(_ policy: LAPolicy, localizedReason: String) async throws -> Bool { false }
}
