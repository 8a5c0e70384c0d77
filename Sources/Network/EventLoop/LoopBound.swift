/// A value that may be handed around freely and touched only on its loop.
///
/// `@unchecked Sendable`: `value` is guarded by a precondition that the loop's turn is running on this thread.
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
