/// An answer of a form that is no problem.
struct Answer: Sendable {
    let status: Int
    let summary: String
    /// The shape of the body; nil if the answer has none, or one that is not JSON.
    let shape: Shape?
    /// The type of a body that is not JSON.
    let contentType: String?

    init(_ status: Int, _ summary: String, _ shape: Shape) {
        self.status = status
        self.summary = summary
        self.shape = shape
        contentType = nil
    }

    init(_ status: Int, _ summary: String, contentType: String? = nil) {
        self.status = status
        self.summary = summary
        shape = nil
        self.contentType = contentType
    }
}
