/// A value that may be passed between threads, but is accessed only on its loop.
///
/// `@unchecked Sendable`: a precondition checks that the current thread runs the loop.
public struct LoopBound<Value>: @unchecked Sendable {
    public let loop: EventLoop
    private let bound: Value

    public init(_ value: Value, on loop: EventLoop) {
        loop.preconditionCurrent("LoopBound")
        self.loop = loop
        self.bound = value
    }

    public var value: Value {
        loop.preconditionCurrent("LoopBound.value")
        return bound
    }
}
